// This script of all pages has the token, the forms, the stream and the sortable tables.
export const lang = document.documentElement.lang;
export const T = (en, zh) => lang === 'zh' ? zh : en;
export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// stored returns a value that this tab has stored (in sessionStorage) or this browser (in localStorage), after storing
// a new one. A browser that forbids storage throws: there is no value then.
export function stored(storage, name, value) {
  try {
    if (value !== undefined) window[storage].setItem(name, value);
    return window[storage].getItem(name) ?? '';
  } catch { return ''; }
}

// The printed link has the token behind its #. The script stores the token for later visits and
// removes it from the address, which a projector may show. Without storage, it lasts as long as the page.
const fromLink = new URLSearchParams(location.hash.slice(1)).get('token') || undefined;
if (fromLink) history.replaceState(null, '', location.pathname + location.search);
const token = () => stored('localStorage', 'lab-token') || fromLink || '';
stored('localStorage', 'lab-token', fromLink);

function enableButtons() {
  $$('[data-needs-token]').forEach(b => { b.disabled = !token(); });
  $$('[data-without-token]').forEach(p => { p.hidden = !!token(); });
  $$('[data-with-token]').forEach(p => { p.hidden = !token(); }); // the teacher's
}

export function notice(text) {
  const p = $('#notice');
  p.textContent = text;
  p.hidden = !text;
}

// After a press, the page scrolls to each new verdict, until the user scrolls. A page on which nobody
// has pressed anything stays where it is, whatever other pages start.
let following = false, verdict;
['wheel', 'touchmove'].forEach(by => addEventListener(by, () => { following = false; }, { passive: true }));
addEventListener('keydown', e => { if (/^(Page|Home|End)/.test(e.key)) following = false; });
addEventListener('resize', () => reveal(verdict));

// reveal scrolls to a verdict, unless all of it is in view.
export function reveal(element) {
  if (!following || !element?.isConnected) return;
  verdict = element;
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const seen = y => element.contains(document.elementFromPoint((left + right) / 2, y)); // nothing covers it
  if (!seen(top + 1) || !seen(bottom - 1)) element.scrollIntoView({ block: bottom - top < innerHeight ? 'center' : 'start' });
}

// post sends a form, and shows the server's error, if there is one.
export async function post(url, body) {
  notice('');
  following = true; // before the answer: the stream may be faster
  try {
    const r = await fetch(url, { method: 'POST', headers: { 'X-Lab-Token': token() }, body: new URLSearchParams(body) });
    if (r.ok) return r;
    const problem = await r.json().catch(() => ({}));
    notice(T(problem.detail, problem.detail_zh) || r.status + ' ' + r.statusText);
  } catch {
    notice(T('The lab does not answer.', '实验室没有应答。'));
  }
  return null;
}

// A form with data-keep keeps its values in this tab, for a change of the language or of the page.
$$('form[data-keep]').forEach(form => {
  const name = 'form-' + form.dataset.keep;
  const kept = JSON.parse(stored('sessionStorage', name) || 'null');
  for (const field of kept ? form.elements : []) {
    if (field.type === 'checkbox') field.checked = kept.some(([k, v]) => k === field.name && v === field.value);
    else if (field.name) field.value = kept.find(([k]) => k === field.name)?.[1] ?? field.value;
  }
  form.addEventListener('change', () => stored('sessionStorage', name, JSON.stringify([...new FormData(form)])));
});

// The key P, or the button, enlarges all pages for a projector.
const projector = on => {
  document.documentElement.classList.toggle('projector', on);
  $('#projector')?.setAttribute('aria-pressed', on);
  dispatchEvent(new Event('resize')); // draw the charts in the new size
};
const enlarge = () => {
  const on = !document.documentElement.classList.contains('projector');
  stored('localStorage', 'projector', on ? 'on' : '');
  projector(on);
};
projector(stored('localStorage', 'projector') === 'on');
document.addEventListener('keydown', e => {
  if (e.key.toLowerCase() === 'p' && !e.ctrlKey && !e.metaKey && !e.altKey && !e.target.closest('input, select, textarea, [role=grid]')) enlarge();
});

// The browser shows its own message only at a visible field: without this, a wrong number in a closed fold
// would stop the form without a word.
let wrong;
document.addEventListener('invalid', ({ target: field }) => {
  for (let fold = field; fold; fold = fold.parentNode.closest?.('details')) fold.open = true;
  if (wrong) return; // name only the first of all wrong fields
  wrong = field;
  setTimeout(() => { wrong = null; });
  const range = field.max ? T(` from ${field.min} to ${field.max}`, `，${field.min} 到 ${field.max}`) : '';
  const needs = field.type === 'number' ? T('enter a whole number', '请输入整数') + range : field.validationMessage;
  notice((field.labels[0]?.firstChild.textContent.trim() ?? field.name) + T(': ', '：') + needs);
  field.focus();
}, true);

document.addEventListener('submit', async e => {
  const form = e.target;
  if ('back' in form.dataset) form.elements.back.value = location.pathname + location.search;
  if (!form.dataset.post) return;
  e.preventDefault();
  const done = await post(e.submitter?.getAttribute('formaction') ?? form.dataset.post, new FormData(form, e.submitter));
  if (done && form.dataset.then) location.href = form.dataset.then;
});

// A vote is sent when its answer is touched.
document.addEventListener('change', e => {
  const form = e.target.closest('form.vote');
  if (form) post(form.dataset.post, new FormData(form));
});

document.addEventListener('click', async e => {
  const button = e.target.closest('button');
  if (!button) return;
  if (button.id === 'projector') enlarge();
  if (button.dataset.choose) {
    $$('input[name=strategy]').forEach(box => { box.checked = button.dataset.choose === 'core' && 'core' in box.dataset; });
    button.form.dispatchEvent(new Event('change'));
  }
  if (button.dataset.post) {
    const done = await post(button.dataset.post, button.dataset.body || '');
    if (done && button.dataset.then) location.href = button.dataset.then;
  }
  if (button.closest('.sortable th')) sortBy(button.closest('th'));
});

function sortBy(head) {
  const table = head.closest('table'), at = head.cellIndex;
  const down = head.getAttribute('aria-sort') !== 'descending';
  $$('th[aria-sort]', table).forEach(h => h.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const value = row => row.cells[at].dataset.sort ?? row.cells[at].textContent.trim();
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => {
    const x = value(a), y = value(b), n = x - y;
    return Number.isNaN(n) ? x.localeCompare(y) : n;
  });
  if (down) rows.reverse();
  body.append(...rows);
}

const drawn = {}; // the text of each part that the stream has sent
// A part whose button is pressed is replaced after the press. Otherwise, the press would be lost.
const late = {};
['pointerup', 'pointercancel', 'keyup'].forEach(over =>
  addEventListener(over, () => setTimeout(() => Object.values(late).forEach(put))));

// put replaces a part of the page. It keeps the focus, the open details, the order of tables, and the
// choice of an answer in a lesson.
function put(words) {
  const { id, en, zh } = words, text = T(en, zh);
  const part = $('#part-' + CSS.escape(id));
  if (!part) return;
  if (part.matches(':active')) {
    late[id] = words;
    return;
  }
  delete late[id];
  const focus = part.contains(document.activeElement) && document.activeElement.id;
  const open = $$('details[id][open]', part).map(d => d.id);
  const chosen = part.matches('.question-box') && $('input:checked', part)?.id;
  const sorted = $('th[aria-sort]', part);
  const at = sorted && { n: sorted.cellIndex, up: sorted.getAttribute('aria-sort') === 'ascending' };
  part.innerHTML = text;
  open.forEach(d => { const el = document.getElementById(d); if (el) el.open = true; });
  if (chosen && !$('input:checked', part)) document.getElementById(chosen).checked = true;
  if (at && $('.sortable', part)) {
    const head = $('.sortable', part).tHead.rows[0].cells[at.n];
    sortBy(head);
    if (at.up) sortBy(head);
  }
  enableButtons();
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  part.dispatchEvent(new CustomEvent('put', { bubbles: true }));
  if (drawn[id] !== text) reveal($('[data-verdict], .sentence', part));
  drawn[id] = text;
}

const handlers = { part: put, parts: all => all.forEach(put), alive: () => {} };
// on sets the handler for one kind of event of the stream.
export function on(name, act) { handlers[name] = act; }

// The lab sends an event every ten seconds. A connection without events for 30 s is closed. If the
// network is too slow for a long first event, the next connection gets twice the time.
const silence = 30_000, longest = 8 * silence;
let source, timer, timeout = silence;
// listen opens the page's stream, and reopens it when it ends. A hidden tab has no stream: a
// browser opens six connections to a server, and six streams would leave none for a form. A new
// stream first sends the complete state.
function listen() {
  source?.close();
  clearTimeout(timer);
  delete document.body.dataset.live;
  if (document.hidden) return;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      $('#offline').hidden = false;
      timeout = 'live' in document.body.dataset ? Math.min(2 * timeout, longest) : silence;
      listen();
    }, timeout);
  };
  source = new EventSource('/dash/stream/' + document.body.dataset.topic);
  for (const name in handlers) {
    source.addEventListener(name, e => {
      timeout = silence;
      wait();
      handlers[name](JSON.parse(e.data));
    });
  }
  source.onopen = () => { $('#offline').hidden = true; document.body.dataset.live = ''; };
  source.onerror = () => {
    $('#offline').hidden = false;
    delete document.body.dataset.live;
    if (source.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
    clearTimeout(timer);
    timer = setTimeout(listen, 1000);
  };
  wait();
}

enableButtons();
// The script of each page runs after this script. It sets its handlers before the stream opens.
if (document.body.dataset.topic) {
  document.addEventListener('DOMContentLoaded', listen);
  document.addEventListener('visibilitychange', listen);
}
