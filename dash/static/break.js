// This script serves the matrix, and the timeline of one result, which the user can zoom.
import { $, $$, T, on } from './dash.js';

// Reload the page if there is a newer run than the one that it shows.
on('newest', runs => {
  const result = $('#result'), newest = runs[result?.dataset.result];
  if (newest && newest !== +result.dataset.run) location.reload();
});
// The way back leads to the same part of the matrix, with hidden verdicts if they were hidden.
$$('[data-matrix]').forEach(link => {
  try { link.search = sessionStorage.getItem('matrix') ?? ''; } catch { /* the browser forbids storage */ }
});
// The visitor who starts a run has asked for its verdict.
$('#result .go[data-post]')?.addEventListener('click', () => {
  const query = new URLSearchParams(location.search);
  if (!query.has('answer')) query.set('answer', 'show');
  history.replaceState(null, '', '?' + query);
});

document.addEventListener('click', e => {
  const choose = e.target.closest('[data-choose]')?.dataset.choose;
  if (choose) $$('input[name=strategy]').forEach(box => { box.checked = choose === 'core' && 'core' in box.dataset; });
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
  const remember = () => {
    try { sessionStorage.setItem('matrix', location.search); } catch { /* the browser forbids storage */ }
  };
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

const film = $('#film');
if (film) {
  const svg = $('svg', film), width = () => svg.getBoundingClientRect().width;
  const say = text => { $('#operation').textContent = text; };
  let zoom = 1;
  $$('.request > .name', svg).forEach(name => name.parentNode.append(name)); // drawn above the bars when it moves

  // magnify zooms the picture. The point at, in pixels from the left edge, stays in place.
  const magnify = (to, at = film.clientWidth / 2) => {
    const place = (film.scrollLeft + at) / width();
    zoom = Math.min(100, Math.max(1, to));
    svg.style.width = `${100 * zoom}%`;
    // Labels that ended at the right edge may now have room to begin at their step.
    $$('[data-begin]', svg).forEach(words => {
      words.setAttribute('x', zoom > 1 ? words.dataset.begin : '100%');
      words.setAttribute('text-anchor', zoom > 1 ? 'start' : 'end');
    });
    scroll(place * width() - at);
  };
  // pin moves the names, so that they stay visible.
  const pin = () => {
    const large = svg.currentCSSZoom || 1; // on a projector
    const left = film.scrollLeft / large, w = width() / large;
    $$('.timeline > svg > .name:not([dx])', film).forEach(name => name.setAttribute('x', left + 6));
    $$('.request > .name', film).forEach(name => name.setAttribute('x', Math.max(.12 * w, left + 40)));
  };
  // When the window changes its size, keep the middle of the picture in the middle. Until magnify
  // runs, the scroll position belongs to the old width.
  let middle = .5, was = width();
  const scrolled = () => {
    pin();
    middle = (film.scrollLeft + film.clientWidth / 2) / was;
  };
  const scroll = to => {
    film.scrollLeft = to;
    was = width();
    scrolled();
  };
  film.addEventListener('scroll', () => { if (width() === was) scrolled(); });
  // In a narrow window, the picture begins at the violation.
  const place = $('[data-place]')?.dataset.place;
  if (place) scroll(parseFloat(place) / 100 * width() - film.clientWidth / 2);
  new ResizeObserver(() => { if (width() !== was) scroll(middle * width() - film.clientWidth / 2); }).observe(film);
  film.addEventListener('wheel', e => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    magnify(zoom * 2 ** (-e.deltaY / 200), e.clientX - film.getBoundingClientRect().left);
  }, { passive: false });
  film.addEventListener('keydown', e => {
    const by = { '+': 2, '=': 2, '-': .5, '0': 0 }[e.key];
    if (by !== undefined && !e.ctrlKey && !e.metaKey) magnify(by * zoom);
  });
  $$('[data-zoom]').forEach(b => b.addEventListener('click', () => magnify(b.dataset.zoom * zoom)));
  $$('[data-place]').forEach(b => b.addEventListener('click', () => {
    magnify(Math.max(zoom, 4)); // the part of the axis with the violation then fills the window
    scroll(parseFloat(b.dataset.place) / 100 * width() - film.clientWidth / 2);
    $('.found', svg)?.remove();
    const line = document.createElementNS(svg.namespaceURI, 'line');
    for (const [name, value] of Object.entries({ class: 'found', x1: b.dataset.place, x2: b.dataset.place, y1: 0, y2: '100%' })) line.setAttribute(name, value);
    svg.append(line);
    say(b.dataset.words);
  }));

  // The text about a request is in its row of the tables.
  const described = {};
  for (const table of $$('#result table')) {
    const heads = $$('thead th', table).map(th => th.textContent);
    for (const row of table.tBodies[0].rows) {
      described[row.cells[0].textContent] = [...row.cells].map((c, i) => c.textContent && `${heads[i]}: ${c.textContent}`).filter(Boolean).join(' · ');
    }
  }
  svg.setAttribute('role', 'group');
  $$('.request', svg).forEach(request => {
    const words = described[request.dataset.request];
    request.setAttribute('tabindex', 0);
    request.setAttribute('role', 'img');
    request.setAttribute('aria-label', words);
    for (const event of ['mouseenter', 'focus', 'click']) request.addEventListener(event, () => say(words));
  });
}
