// This script serves the matrix, and the timeline of one result, which the user can zoom.
import { $, $$, T, on, post } from './dash.js';

// Reload the page if there is a newer run than the one that it shows.
on('newest', runs => {
  const result = $('#result'), newest = runs[result?.dataset.result];
  if (newest && newest !== +result.dataset.run) location.reload();
});

document.addEventListener('click', e => {
  const choose = e.target.closest('[data-choose]')?.dataset.choose;
  if (choose) $$('input[name=strategy]').forEach(box => { box.checked = choose === 'core' && 'core' in box.dataset; });
});

const matrix = $('#part-matrix');
if (matrix) {
  const filter = $('#filter'), fields = filter.elements;
  // The matrix is a grid: one tab stop, and the arrow keys move between its cells.
  let current = '';
  const shown = el => el.offsetParent !== null;
  const inside = cell => $('a, button:enabled, .now', cell) ?? cell;
  const stop = () => {
    const all = $$('a, button, [tabindex]', matrix);
    all.forEach(el => { el.tabIndex = -1; });
    const at = document.getElementById(current);
    const to = at && matrix.contains(at) && shown(at) && !at.disabled ? at : all.find(el => el.closest('td') && shown(el) && !el.disabled) ?? all.find(shown);
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
    const rows = $$('tr', matrix).filter(shown), cells = row => [...row.cells].filter(shown);
    let y = rows.indexOf(from.parentNode), x = cells(rows[y]).indexOf(from);
    const wide = cells(rows[0]).length - 1;
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
    const row = cells(rows[Math.min(rows.length - 1, Math.max(0, y))]);
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
  matrix.addEventListener('click', e => {
    const button = e.target.closest('button');
    if (!button) return;
    const [hazard, strategy, fenced] = button.id.split('.');
    post('/dash/break/start', { hazard, strategy, fenced: fenced ? 'true' : '' });
  });

  // arrange shows the rows whose lock survives the chosen hazard, or fails at it.
  const arrange = () => {
    const hazard = fields.hazard.value, survives = fields.survives.value === 'yes';
    const x = heads().findIndex(th => th.dataset.hazard === hazard);
    $$('.asked', matrix).forEach(cell => cell.classList.remove('asked'));
    let found = 0;
    const rows = $$('tbody tr:not(.family)', matrix);
    for (const row of rows) {
      const verdict = x > 0 && $('.safe, .cost, .harm, .doubt', row.cells[x]);
      row.hidden = x > 0 && !verdict?.matches(survives ? '.safe, .cost' : '.harm');
      if (x > 0 && !row.hidden) row.cells[x].classList.add('asked');
      if (!row.hidden && shown(row)) found++;
    }
    if (x > 0) heads()[x].classList.add('asked');
    $('#count').textContent = x > 0 ? T(`${found} rows`, `${found} 行`) : '';
    const all = fields.rows.value === 'all' && fields.columns.value === 'all';
    $('#all').textContent = all ? T('Show the basics', '只显示基础') : T('Show all', '全部显示');
    $('#all').dataset.to = all ? 'basic' : 'all';
    stop();
  };
  // The filter is in the address, so that it survives a change of page or language.
  const remember = () => {
    history.replaceState(null, '', '?' + new URLSearchParams(new FormData(filter)));
    arrange();
  };
  filter.addEventListener('change', e => {
    if (e.target === fields.hazard && fields.hazard.value) fields.recorded.checked = true; // the answer needs them
    remember();
    $('thead .asked', matrix)?.scrollIntoView({ block: 'nearest', inline: 'center' });
  });
  filter.addEventListener('submit', e => e.preventDefault());
  $('#all').addEventListener('click', () => {
    fields.rows.value = fields.columns.value = $('#all').dataset.to;
    remember();
  });
  // A message may replace many results: arrange them once.
  let due = false;
  matrix.addEventListener('put', () => {
    if (due) return;
    due = true;
    queueMicrotask(() => { due = false; arrange(); });
  });
  arrange();
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
