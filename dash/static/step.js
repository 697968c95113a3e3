// This script marks the line of code that each client runs next, and handles the keys.
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
    line.dataset.sign = sign;
  }
  centre(matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth');
});

function centre(behavior) {
  for (const line of $$('.listing .at')) {
    const box = line.closest('.listing');
    box.scrollTo({ top: line.offsetTop - box.clientHeight / 2, behavior });
  }
}
addEventListener('resize', () => centre('auto'));
document.addEventListener('toggle', () => centre('auto'), true); // a closed listing cannot scroll

// The last step of each client stays in view.
const showLast = () => $$('.taken').forEach(list => { list.scrollTop = list.scrollHeight; });
document.addEventListener('put', showLast);
showLast();

document.addEventListener('keydown', e => {
  if (e.repeat || e.ctrlKey || e.altKey || e.metaKey || e.target.closest('input, select, textarea')) return;
  if (e.key === 'u') $('#undo')?.click();
  if (e.key === 'a' || e.key === 'b') $('#go-' + e.key)?.click();
});
