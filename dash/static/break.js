// This script serves the matrix, and the timeline of one result, which the user can zoom.
import { $, $$, on } from './dash.js';

// Reload the page if there is a newer run than the one that it shows.
on('newest', runs => {
  const result = $('#result'), newest = runs[result?.dataset.result];
  if (newest && newest !== +result.dataset.run) location.reload();
});

document.addEventListener('click', e => {
  const choose = e.target.closest('[data-choose]')?.dataset.choose;
  if (choose) $$('input[name=strategy]').forEach(box => { box.checked = choose === 'core' && 'core' in box.dataset; });
});

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
    const left = film.scrollLeft, w = width();
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
    magnify(Math.max(zoom, 30)); // wide enough to separate 5 ms in 3 s
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
