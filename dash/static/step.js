// This script marks the line of code that each client runs next, handles the keys, and keeps the round's
// strategy in the form and in the address.
import { $, $$, on } from './dash.js';

on('mark', marks => {
  $$('.listing .at').forEach(line => {
    line.classList.remove('at');
    line.removeAttribute('aria-current');
    line.removeAttribute('data-sign');
  });
  for (const { id, sign } of marks) {
    const line = id && document.getElementById(id);
    if (!line) continue;
    line.classList.add('at');
    line.setAttribute('aria-current', 'step');
    line.dataset.sign = (line.dataset.sign ?? '') + sign;
  }
  centre();
});

function centre() {
  const line = $('.listing .at'), box = $('.listing');
  if (line) box.scrollTop = line.offsetTop - box.clientHeight / 2;
}
document.addEventListener('toggle', centre, true); // a closed listing cannot scroll

// A new round, also one of another page, shows its strategy. A reload keeps it.
const round = () => $('#part-round [data-round]')?.dataset ?? {};
let known = round().round;
document.addEventListener('put', () => {
  const { round: number, strategy } = round();
  if (!number || number === known) return;
  known = number;
  $('select[name=strategy]').value = strategy;
  history.replaceState(null, '', '?strategy=' + strategy);
});

document.addEventListener('keydown', e => {
  if (e.repeat || e.ctrlKey || e.altKey || e.metaKey || e.target.closest('input, select, textarea')) return;
  $$('main button').find(b => $('kbd', b)?.textContent === e.key)?.click();
});
