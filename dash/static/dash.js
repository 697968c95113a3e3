// What all pages share: the token, forms, the stream, tables that sort.
export const lang = document.documentElement.lang;
export const T = (en, zh) => lang === 'zh' ? zh : en;
export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// The printed link carries the token behind its #. It is kept for later visits, and goes
// from the address, which everybody reads on the projector.
const carried = new URLSearchParams(location.hash.slice(1)).get('token');
// Where the browser forbids storage, localStorage throws: then the token lasts as long as
// this page.
const own = carried || '';
if (carried) {
  try { localStorage.setItem('lab-token', carried); } catch { /* see above */ }
  history.replaceState(null, '', location.pathname + location.search);
}
const token = () => {
  try { return localStorage.getItem('lab-token') || own; } catch { return own; }
};

function mayAct() {
  $$('[data-needs-token]').forEach(b => { b.disabled = !token(); });
  $$('[data-without-token]').forEach(p => { p.hidden = !!token(); });
}

export function notice(text) {
  const p = $('#notice');
  p.textContent = text;
  p.hidden = !text;
}

// post sends a form, and says what the server has against it.
export async function post(url, body) {
  notice('');
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

document.addEventListener('submit', async e => {
  const form = e.target;
  if ('back' in form.dataset) form.elements.back.value = location.pathname + location.search;
  if (!form.dataset.post) return;
  e.preventDefault();
  const done = await post(form.dataset.post, new FormData(form, e.submitter));
  if (done && form.dataset.then) location.href = form.dataset.then;
});

document.addEventListener('click', async e => {
  const button = e.target.closest('button');
  if (!button) return;
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

// A press that is not over yet must find, when it ends, the button on which it began: what
// comes for its part meanwhile is late.
const late = {};
['pointerup', 'pointercancel', 'keyup'].forEach(over =>
  addEventListener(over, () => setTimeout(() => Object.values(late).forEach(put))));

// put replaces a part of the page; focus, open details and the order of tables stay.
function put(words) {
  const { id, en, zh } = words;
  const part = $('#part-' + CSS.escape(id));
  if (!part) return;
  if (part.matches(':active')) {
    late[id] = words;
    return;
  }
  delete late[id];
  const focus = part.contains(document.activeElement) && document.activeElement.id;
  const open = $$('details[id][open]', part).map(d => d.id);
  const sorted = $('th[aria-sort]', part);
  const at = sorted && { n: sorted.cellIndex, up: sorted.getAttribute('aria-sort') === 'ascending' };
  part.innerHTML = T(en, zh);
  open.forEach(d => { const el = document.getElementById(d); if (el) el.open = true; });
  if (at && $('.sortable', part)) {
    const head = $('.sortable', part).tHead.rows[0].cells[at.n];
    sortBy(head);
    if (at.up) sortBy(head);
  }
  if (focus) document.getElementById(focus)?.focus();
  mayAct();
  part.dispatchEvent(new CustomEvent('put', { bubbles: true }));
}

const heard = { part: put, parts: all => all.forEach(put), alive: () => {} };
// on says what to do with an event of the stream.
export function on(name, act) { heard[name] = act; }

// The lab sends an event every ten seconds. A connection that brings none for longer is
// lost, even if no end got an error. Or the first event is long and the network slow: then
// the next connection gets twice the time.
const silence = 30_000, longest = 8 * silence;
let source, timer, patience = silence;
// listen follows the page's stream, and connects again whatever ended it. A hidden tab has
// no stream: a browser opens six connections to a server, and six streams would leave none
// for the seventh tab, nor for a form. The first events of a stream have all that was missed.
function listen() {
  source?.close();
  clearTimeout(timer);
  delete document.body.dataset.live;
  if (document.hidden) return;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      $('#offline').hidden = false;
      patience = 'live' in document.body.dataset ? Math.min(2 * patience, longest) : silence;
      listen();
    }, patience);
  };
  source = new EventSource('/dash/stream/' + document.body.dataset.topic);
  for (const name in heard) {
    source.addEventListener(name, e => {
      patience = silence;
      wait();
      heard[name](JSON.parse(e.data));
    });
  }
  source.onopen = () => { $('#offline').hidden = true; document.body.dataset.live = ''; };
  source.onerror = () => {
    $('#offline').hidden = false;
    delete document.body.dataset.live;
    if (source.readyState !== EventSource.CLOSED) return; // it connects again by itself
    clearTimeout(timer);
    timer = setTimeout(listen, 1000);
  };
  wait();
}

mayAct();
// The page's own script comes after this one, and says first what it wants to hear.
if (document.body.dataset.topic) {
  document.addEventListener('DOMContentLoaded', listen);
  document.addEventListener('visibilitychange', listen);
}
