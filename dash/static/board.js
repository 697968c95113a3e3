// This script marks the lines of code that the clients run next, and lets a key press the button that shows it. It is
// no module, because a site has it too, and browsers do not load modules from files.
'use strict';

// mark marks the lines: marks has file and line, both from 0, and the sign of a client.
function mark(marks) {
  document.querySelectorAll('.listing .at').forEach(line => {
    line.classList.remove('at');
    line.removeAttribute('aria-current');
    line.removeAttribute('data-sign');
  });
  for (const { file, line: n, sign } of marks) {
    const line = document.querySelectorAll('.listing pre')[file].children[n];
    line.classList.add('at');
    line.setAttribute('aria-current', 'step');
    line.dataset.sign = (line.dataset.sign ?? '') + sign;
  }
  centre();
}

function centre() {
  const line = document.querySelector('.listing .at'), box = document.querySelector('.listing');
  if (line) box.scrollTop = line.offsetTop - box.clientHeight / 2;
}
document.addEventListener('toggle', centre, true); // a closed listing cannot scroll

document.addEventListener('keydown', e => {
  if (e.repeat || e.ctrlKey || e.altKey || e.metaKey || e.target.closest('input, select, textarea')) return;
  const shown = [...document.querySelectorAll('main :is(button, a):not([hidden])')];
  shown.find(b => b.querySelector('kbd')?.textContent === e.key)?.click();
});
