// This script serves the matrix and the pages of its results.
import { $, $$, T, on, stored } from './dash.js';

// Reload the page if there is a newer run than the one that it shows.
on('newest', runs => {
  const result = $('#result'), newest = runs[result?.dataset.result];
  if (newest && newest !== +result.dataset.run) location.reload();
});
// The way back leads to the same part of the matrix, with hidden verdicts if they were hidden.
$$('[data-matrix]').forEach(link => { link.search = stored('sessionStorage', 'matrix'); });
// The visitor who starts a run has asked for its verdict.
$('#result .go[data-post]')?.addEventListener('click', () => {
  const query = new URLSearchParams(location.search);
  if (!query.has('answer')) query.set('answer', 'show');
  history.replaceState(null, '', '?' + query);
});

const matrix = $('#board');
if (matrix) {
  const filter = $('#filter'), fields = filter.elements;
  // The matrix is a grid: one tab stop, and the arrow keys move between its cells.
  let current = '';
  const inside = cell => $('a, button, .now', cell) ?? cell;
  const stop = () => {
    const all = $$('a, button, [tabindex]', matrix);
    all.forEach(el => { el.tabIndex = -1; });
    const at = document.getElementById(current);
    const to = at && matrix.contains(at) ? at : all.find(el => el.closest('td')) ?? all[0];
    if (to) to.tabIndex = 0;
  };
  const go = cell => {
    const to = inside(cell);
    $$('[tabindex="0"]', matrix).forEach(el => { el.tabIndex = -1; });
    to.tabIndex = 0;
    to.focus();
    to.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  matrix.addEventListener('keydown', e => {
    const from = e.target.closest('td, th');
    if (!from || e.altKey || e.metaKey) return;
    const rows = $$('tr', matrix), wide = rows[0].cells.length - 1;
    let y = rows.indexOf(from.parentNode), x = from.cellIndex;
    switch (e.key) {
      case 'ArrowRight': x++; break;
      case 'ArrowLeft': x--; break;
      case 'ArrowDown': y++; break;
      case 'ArrowUp': y--; break;
      case 'Home': x = 0; if (e.ctrlKey) y = 0; break;
      case 'End': x = wide; if (e.ctrlKey) y = rows.length - 1; break;
      default: return;
    }
    e.preventDefault();
    const row = rows[Math.min(rows.length - 1, Math.max(0, y))].cells;
    go(row[Math.min(row.length - 1, Math.max(0, x))]);
  });
  const heads = () => $$('thead th', matrix);
  const tell = e => {
    const cell = e.target.closest('td, th'), head = heads()[cell?.cellIndex];
    if (!head?.dataset.hazard) return;
    const [hazard, title] = [...head.children].map(el => el.textContent);
    const lock = cell === head ? '' : cell.parentNode.cells[0].innerText.trim() + ', ';
    $('#cell').textContent = `${lock}${hazard}: ${title}`;
  };
  matrix.addEventListener('mouseover', tell);
  matrix.addEventListener('focusin', e => {
    if (e.target.id) current = e.target.id;
    tell(e);
  });
  // The server sends only the cells that the filter shows. The filter is in the address, so that it
  // survives a reload, and a change of language.
  let newest;
  const remember = () => stored('sessionStorage', 'matrix', location.search);
  remember();
  const refresh = async () => {
    const query = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value));
    history.replaceState(null, '', '?' + query);
    remember();
    const mine = newest = Symbol('request');
    const page = await fetch(location.href).then(r => r.text()).catch(() => '');
    if (mine !== newest) return; // the filter has changed meanwhile
    const fresh = new DOMParser().parseFromString(page, 'text/html'), board = $('#board', fresh);
    if (!board) {
      setTimeout(() => mine === newest && refresh(), 1000); // the lab restarts
      return;
    }
    const focus = matrix.contains(document.activeElement) && document.activeElement.id;
    matrix.innerHTML = board.innerHTML;
    matrix.dataset.count = board.dataset.count;
    $('#found').textContent = $('#found', fresh).textContent;
    stop();
    if (focus) document.getElementById(focus)?.focus();
  };
  matrix.addEventListener('click', e => {
    const hazard = e.target.closest('button')?.dataset.sort;
    if (!hazard) return;
    if (fields.hide.checked) { // the order would tell the verdicts
      $('#found').textContent = T('Show the verdicts first.', '请先显示判定。');
      return;
    }
    fields.sort.value = fields.sort.value === hazard ? '' : hazard;
    refresh();
  });
  let typing;
  filter.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(refresh, 150);
  });
  filter.addEventListener('submit', e => e.preventDefault());
  on('count', count => { if (count !== +matrix.dataset.count) refresh(); });
  matrix.addEventListener('put', stop);
  stop();
}
