// This script draws the verdicts, the counters and the charts of the running run.
import { $, $$, T, on, reveal } from './dash.js';

const rest = $('#stage').innerHTML; // before the first run
let run = null, shown = -1, replayed = 0, drawing = 0, news = false, pictured = rest;

on('run', state => {
  const following = !run || run.running && shown >= run.series.length - 1, ends = run?.running ?? true;
  run = state;
  run.series ??= [];
  if (run.running ? following : ends) shown = run.running ? run.series.length - 1 : Math.max(0, run.series.findIndex(s => s.ended?.class === 'broken'));
  shown = Math.min(shown, run.series.length - 1);
  startOrStop();
  drawSoon(true);
});

// A tick has one point of the running strategy, its picture if it is new, and at the end the verdict.
on('tick', ({ strategy, total, points, pictures, ended }) => {
  const now = run?.series.at(-1);
  if (now?.strategy !== strategy) return;
  now.points.push(...points);
  now.pictures.push(...pictures ?? []);
  Object.assign(now, { total, ended });
  drawSoon(!!ended);
});

const start = $('#start');
let pressed = -Infinity; // when the button was pressed
$('form.plan').addEventListener('submit', () => {
  pressed = performance.now();
  setTimeout(startOrStop); // after dash.js has read the form
  setTimeout(startOrStop, 1000);
});
$('form.plan').addEventListener('change', drawSoon);

// startOrStop makes the one button start a run, or stop it. It is disabled for a second after a press, so that
// a double click does not stop the run that it has started.
function startOrStop() {
  start.textContent = run?.running ? start.dataset.stop : start.dataset.start;
  start.classList.toggle('stop', !!run?.running);
  if (run?.running) start.setAttribute('formaction', '/dash/stop');
  else start.removeAttribute('formaction');
  start.formNoValidate = !!run?.running;
  start.disabled = !$('[data-without-token]').hidden || performance.now() - pressed < 990;
}

document.addEventListener('click', e => {
  const button = e.target.closest('button');
  if (button?.dataset.series) {
    shown = +button.dataset.series;
    replayed = 0;
    drawSoon();
  }
  if (button?.id === 'replay') {
    replayed = performance.now();
    drawSoon();
  }
});
$('#figures').addEventListener('toggle', drawSoon);
addEventListener('resize', drawSoon);

// drawSoon draws at most once for each picture that the screen shows. If there is news, it scrolls to
// the verdicts, or to the last one if the screen is too small for all.
function drawSoon(isNews) {
  news ||= isNews === true;
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    draw();
    const list = $('#verdicts');
    if (news) reveal(list.offsetHeight < innerHeight ? list : list.lastChild);
    news = false;
  });
}

const number = n => (Math.round(n) + 0).toLocaleString('en'); // no -0
const signs = { holds: '✓', broken: '✗', inconclusive: '?' };

// verdicts draws a button for each strategy, before the run also: its verdict, or how far it is, and its stock
// over time, all with the same axes. seen are the points of the chosen one that the page shows.
function verdicts(seen) {
  const list = $('#verdicts'), names = run.plan ?? $$('input[name=strategy]:checked').map(box => box.value);
  while (list.children.length > names.length) list.lastChild.remove();
  list.classList.toggle('many', names.length > 3);
  const all = run.series.flatMap(s => s.points);
  const end = Math.max(...all.map(p => p.t), 0), low = Math.min(0, ...all.map(due));
  names.forEach((name, i) => {
    const s = run.series[i];
    let button = list.children[i]?.firstChild;
    if (!button) {
      button = list.appendChild(document.createElement('li')).appendChild(document.createElement('button'));
      button.type = 'button';
      button.dataset.series = i;
      for (const part of ['name', 'says', 'soft', 'chart']) button.appendChild(document.createElement('span')).className = part;
    }
    const last = (i === shown ? seen : s?.points)?.at(-1), lost = lostAt(last), ended = last === s?.points.at(-1) && s?.ended;
    const texts = ended ? [`${signs[ended.class]} ${name}`, T(ended.headline.en, ended.headline.zh), !ended.rate ? '' : T(`${number(ended.rate)} requests/s, p99 ${number(ended.p99)} ms`, `每秒 ${number(ended.rate)} 个请求，p99 ${number(ended.p99)} 毫秒`)]
      : [s ? `… ${name}` : name, lost > 0 ? T(`${number(lost)} updates lost so far`, `已丢失 ${number(lost)} 次更新`) : '', last ? `${number(last.done)} / ${number(s.total)}` : ''];
    texts.forEach((text, j) => { if (button.children[j].textContent !== text) button.children[j].textContent = text; });
    button.className = ended ? ended.class : (lost > 0 ? 'broken' : '');
    button.setAttribute('aria-pressed', !!s && i === shown);
    button.disabled = !s;
  });
  // Only now has each its width.
  names.forEach((_, i) => stock(list.children[i].firstChild.lastChild, i === shown ? seen : run.series[i]?.points ?? [], end, low));
}

const due = p => run.stock - p.sold;
const lostAt = p => known(p) ? Math.max(0, p.left - due(p)) : 0;
const known = p => p && p.left !== null;

// stock draws the stock of a strategy over time, up to end, beside the correct stock, which falls to low.
function stock(box, all, end, low) {
  const points = all.filter(known), stocked = (run.plan ? run.stock : +$('[name=stock]').value) || 1;
  chart(box, $('#verdicts').matches('.many') || innerWidth < 500 ? 110 : 200, end, low, stocked, (x, y, w, em) => {
    if (!points.length) return '';
    const left = [[0, run.stock], ...points.map(p => [p.t, p.left])], owed = [[0, run.stock], ...points.map(p => [p.t, due(p)])];
    // Only a stock above the correct one is a loss. A lower stock may come from sales in progress.
    const above = left.map(([t, v], i) => [t, Math.max(v, owed[i][1])]);
    const last = points.at(-1), gap = lostAt(last);
    return area('gap', above, owed, x, y) + line('due', owed, x, y) + line('left', left, x, y) +
      (gap ? label(x(last.t), (y(last.left) + y(due(last))) / 2, w, em, T(`${number(gap)} lost`, `丢失 ${number(gap)}`)) : '');
  });
}

// seen returns the points that a replay has reached, or all. The page shows the last one of them in all its panels.
function seen(s) {
  if (!replayed || !s?.ended) return s?.points ?? [];
  const until = (performance.now() - replayed) / 1000 / slower, points = s.points.filter(p => p.t <= until);
  if (points.length < s.points.length) drawSoon();
  else replayed = 0;
  return points;
}

// counters shows what was sold and what is missing from the stock. The difference is lost.
function counters(s, now) {
  const sold = now?.sold ?? 0, taken = known(now) ? run.stock - now.left : 0, gap = lostAt(now), say = n => now && !known(now) ? '?' : number(n);
  const all = Math.max(sold, taken, run.stock || 0, 1), wide = n => `${100 * Math.max(0, n) / all}%`;
  $('#of').textContent = s ? `(${s.strategy})` : '';
  $('#sold').textContent = number(sold);
  $('#taken').textContent = say(taken);
  $('#lost').textContent = say(gap);
  $('#sold-bar').style.width = wide(sold);
  $('#taken-bar').style.width = wide(Math.min(taken, sold - gap));
  $('#gap-bar').style.width = wide(gap);
  $$('.counters :is(dt, dd):nth-last-child(-n+2)').forEach(e => e.classList.toggle('alarm', gap > 0));
  picture(s, { ...now?.replicas, sold: number(sold), taken: say(taken), left: say(now?.left) }, now);
}

// picture draws the system, with the numbers of the point that the counters show.
function picture(s, numbers, now) {
  const drawn = s?.pictures[now?.picture], text = !drawn ? rest : T(drawn.en, drawn.zh).replace(/{([^{}]+)}/g, (_, name) => numbers[name].toLocaleString('en'));
  if (text !== pictured) $('#stage').innerHTML = pictured = text;
  $('#stage').dataset.strategy = s?.strategy ?? '';
}

function draw() {
  run ??= { series: [] };
  const s = run.series[shown], points = s?.points ?? [], reached = seen(s);
  status(s, reached.at(-1));
  verdicts(reached);
  counters(s, reached.at(-1));
  $('#figures').hidden = !points.length;
  if (s?.ended) $('#replay').removeAttribute('aria-disabled');
  else $('#replay').setAttribute('aria-disabled', 'true');
  if (!$('#figures').open || !points.length) return;
  const end = points.at(-1).t;
  chart($('[data-chart=rate]'), 180, end, 0, Math.max(1, ...points.map(p => p.rate)), (x, y) => line('rate', points.map(p => [p.t, p.rate]), x, y));
  chart($('[data-chart=times]'), 180, end, 0, Math.max(1, ...points.map(p => p.p99)), (x, y) =>
    line('p99', points.map(p => [p.t, p.p99]), x, y) + line('p50', points.map(p => [p.t, p.p50]), x, y));
  figures(points);
}

const slower = 4; // a replay takes this many times as long as the run

// status says what is running, and who holds the lock of the strategy that the page shows.
function status(chosen, now) {
  const p = $('#status'), s = run.series.at(-1), owner = s === chosen && now?.owner;
  let text = '';
  if (!run.plan) text = T('Nothing has run yet. Press Start.', '尚未运行。请点击“开始”。');
  else if (!s) text = run.running ? T('The run is starting.', '运行即将开始。') : T('The run ended before its first request.', '运行在第一个请求之前就结束了。');
  else if (run.running) text = T(`Running ${s.strategy}, ${run.series.length} of ${run.plan.length}.`, `正在运行 ${s.strategy}，第 ${run.series.length}/${run.plan.length} 个。`);
  else if (run.stopped) text = T('Stopped.', '已停止。');
  else text = T('Finished.', '已完成。');
  if (run?.running && owner) text += ' ' + T(`The lock is held by ${owner.task}.`, `持锁者：${owner.task}。`);
  if (run?.product) text += ' ' + T(`Product: ${run.product}.`, `商品：${run.product}。`);
  if (run?.error) text += ' ' + T(run.error.en, run.error.zh);
  p.classList.toggle('alarm', !!run?.error);
  if (p.textContent !== text) p.textContent = text;
}

// chart draws the axes in a box of a height, and between them the picture that the function between returns.
function chart(box, h, end, low, high, between) {
  const w = Math.max(150, box.clientWidth), em = parseFloat(getComputedStyle(box).fontSize), title = box.closest('figure')?.querySelector('figcaption').textContent;
  const x0 = 4 * em, y0 = h - 2 * em, x = t => x0 + (w - x0 - 12) * (end ? t / end : 0), y = v => y0 - (y0 - em) * (v - low) / (high - low || 1);
  let axes = '';
  for (const v of ticks(low, high, h / 4 / em)) axes += `<line class="grid" x1="${x0}" x2="${w - 12}" y1="${y(v)}" y2="${y(v)}"/><text class="end" x="${x0 - 6}" y="${y(v)}" dy=".35em">${number(v)}</text>`;
  for (const t of ticks(0, end, w / 8 / em)) axes += `<text class="mid" x="${x(t)}" y="${h - em / 2}">${+t.toFixed(2)} s</text>`;
  box.innerHTML = `<svg viewBox="0 0 ${w} ${h}" height="${h}" ${title ? `role="img" aria-label="${title.replace(/["<>&]/g, '').trim()}"` : 'aria-hidden="true"'}><defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" class="tint"/><line x1="0" x2="0" y1="0" y2="8" class="stripe"/></pattern></defs>${axes}${between(x, y, w, em)}</svg>`;
}

function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough) || 1;
  const all = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) all.push(v);
  return all;
}

const path = (pairs, x, y) => pairs.map(([t, v]) => `${x(t).toFixed(1)},${y(v).toFixed(1)}`).join(' ');
const line = (name, pairs, x, y) => `<polyline class="line ${name}" points="${path(pairs, x, y)}"/>`;
const area = (name, upper, lower, x, y) => `<polygon class="${name}" fill="url(#hatch)" points="${path(upper, x, y)} ${path(lower.toReversed(), x, y)}"/>`;
// label stands left of x, or where the left has no room, right of it, as far as the width w allows.
const label = (x, y, w, em, text) => {
  const wide = .85 * em * text.replace(/[^\x00-\xff]/g, '  ').length, left = x > wide;
  return `<text class="${left ? 'end ' : ''}alarm" x="${left ? x - 8 : Math.max(2, Math.min(x + 6, w - wide))}" y="${y}" dy=".35em">${text}</text>`;
};

function figures(points) {
  const heads = T('s|requests|sold|failed|actual stock|correct stock|requests/s|p50 ms|p99 ms', '秒|请求|已售|失败|实际库存|正确库存|请求/秒|p50 毫秒|p99 毫秒').split('|');
  const row = p => [p.t.toFixed(2), p.done, p.sold, p.failed, p.left ?? '?', due(p), p.rate.toFixed(0), p.p50.toFixed(1), p.p99.toFixed(1)];
  $('#figures .wide').innerHTML = `<table><thead><tr>${heads.map(h => `<th scope="col">${h}</th>`).join('')}</tr></thead><tbody>${points.map(p => `<tr>${row(p).map(c => `<td>${c}</td>`).join('')}</tr>`).join('')}</tbody></table>`;
}
