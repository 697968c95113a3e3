// This script shows a phone its own choice and its own score, also after a reload.
import { $, $$, T } from './dash.js';

async function showOwn() {
  const answer = await fetch('/dash/vote/mine').catch(() => null);
  if (!answer?.ok) return;
  const { choice, score } = await answer.json();
  const box = choice && $('#option-' + choice);
  if (box) box.checked = true;
  $$('[data-option]').forEach(o => { o.classList.toggle('own', +o.dataset.option === choice); });
  $('#mine').textContent = score.of ? T(`You were right in ${score.right} of ${score.of}.`, `你答对了 ${score.right} / ${score.of} 题。`) : '';
}

document.addEventListener('put', showOwn);
showOwn();
