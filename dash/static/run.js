// This script draws the verdicts and the charts of the running run.
import { $, $$, T, on, reveal } from './dash.js';

let run = null, shown = -1, replayed = 0, drawing = 0, due = false;

on('run', state => {
  const following = !run || run.running && shown >= run.series.length - 1;
  run = state;
  run.series ??= [];
  if (!run.running) shown = Math.max(0, run.series.findIndex(s => s.ended?.class === 'broken'));
  else if (following || shown >= run.series.length) shown = run.series.length - 1;
  drawSoon(true);
});

on('tick', ({ total, point }) => {
  const now = run?.series.at(-1);
  if (!now) return;
  now.total = total;
  now.points.push(point);
  drawSoon();
});

on('ended', ended => {
  if (run?.series.length) run.series.at(-1).ended = ended;
  drawSoon(true);
});

document.addEventListener('click', e => {
  const button = e.target.closest('button');
  if (button?.dataset.choose) {
    $$('input[name=strategy]').forEach(box => { box.checked = button.dataset.choose === 'core' && 'core' in box.dataset; });
    $('form.plan').dispatchEvent(new Event('change'));
  }
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
function drawSoon(news) {
  due ||= news === true;
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    draw();
    const list = $('#verdicts');
    if (due) reveal(list.offsetHeight < innerHeight ? list : list.lastChild);
    due = false;
  });
}

const number = n => Math.round(n).toLocaleString('en');
const signs = { holds: '✓', broken: '✗', inconclusive: '?' };

// verdicts draws a button for each strategy: its verdict, or how far it is. It shows its chart.
function verdicts() {
  const list = $('#verdicts');
  while (list.children.length > run.series.length) list.lastChild.remove();
  run.series.forEach((s, i) => {
    let button = list.children[i]?.firstChild;
    if (!button) {
      button = list.appendChild(document.createElement('li')).appendChild(document.createElement('button'));
      button.type = 'button';
      button.dataset.series = i;
      for (const part of ['name', 'says', 'soft']) button.appendChild(document.createElement('span')).className = part;
    }
    const last = s.points.at(-1), lost = last?.count ? Math.max(0, last.count.left - run.stock + last.count.sold) : 0;
    const texts = s.ended ? [`${signs[s.ended.class]} ${s.strategy}`, T(s.ended.headline.en, s.ended.headline.zh), T(`${number(s.ended.rate)} requests/s, p99 ${number(s.ended.p99)} ms`, `每秒 ${number(s.ended.rate)} 个请求，p99 ${number(s.ended.p99)} 毫秒`)]
      : [`… ${s.strategy}`, lost > 0 ? T(`${number(lost)} updates lost so far`, `已丢失 ${number(lost)} 次更新`) : '', last ? `${number(last.done)} / ${number(s.total)}` : ''];
    texts.forEach((text, j) => { if (button.children[j].textContent !== text) button.children[j].textContent = text; });
    button.className = s.ended?.class ?? (lost > 0 ? 'broken' : '');
    button.setAttribute('aria-pressed', i === shown);
  });
}

function draw() {
  status();
  if (!run) return;
  verdicts();
  const s = run.series[shown];
  let points = s?.points ?? [];
  for (const id of ['stock', 'figures']) $('#' + id).hidden = !points.length;
  if (!points.length) return;
  const end = points.at(-1).t;
  $('#of').textContent = s.strategy;
  $('#replay').hidden = !s.ended;
  if (replayed && s.ended) {
    const until = (performance.now() - replayed) / 1000 / slower;
    points = points.filter(p => p.t <= until);
    if (until < end) drawSoon();
    else replayed = 0;
  }
  const due = p => run.stock - p.count.sold;
  const known = points.filter(p => p.count);
  chart('stock', end, Math.min(0, ...known.map(due)), run.stock, (x, y) => {
    const left = [[0, run.stock], ...known.map(p => [p.t, p.count.left])], owed = [[0, run.stock], ...known.map(p => [p.t, due(p)])];
    // Only a stock above the correct one is a loss. A lower stock may come from sales in progress.
    const above = left.map(([t, v], i) => [t, Math.max(v, owed[i][1])]);
    const last = known.at(-1), gap = last ? Math.max(0, last.count.left - due(last)) : 0;
    return area('gap', above, owed, x, y) + line('due', owed, x, y) + line('left', left, x, y) +
      (gap ? label(x(last.t), (y(last.count.left) + y(due(last))) / 2, T(`${number(gap)} lost`, `丢失 ${number(gap)}`)) : '');
  });
  if (!$('#figures').open || !points.length) return;
  chart('rate', end, 0, Math.max(1, ...points.map(p => p.rate)), (x, y) => line('rate', points.map(p => [p.t, p.rate]), x, y));
  chart('times', end, 0, Math.max(1, ...points.map(p => p.p99)), (x, y) =>
    line('p99', points.map(p => [p.t, p.p99]), x, y) + line('p50', points.map(p => [p.t, p.p50]), x, y));
  replicas(points.at(-1));
  figures(points, due);
}

const slower = 4; // a replay takes this many times as long as the run

// status says what is running. It changes only with the strategy, so a screen reader can follow.
function status() {
  const p = $('#status'), s = run?.series.at(-1), owner = s?.points.at(-1)?.owner;
  let text = '';
  if (!run?.of) text = T('Nothing has run yet. Press Start.', '尚未运行。请点击“开始”。');
  else if (!s) text = run.running ? T('The run is starting.', '运行即将开始。') : T('The run ended before its first request.', '运行在第一个请求之前就结束了。');
  else if (run.running) text = T(`Running ${s.strategy}, ${run.series.length} of ${run.of}.`, `正在运行 ${s.strategy}，第 ${run.series.length}/${run.of} 个。`);
  else text = T('Finished.', '已完成。');
  if (run?.running && owner) text += ' ' + T(`The lock is held by ${owner.task}.`, `持锁者：${owner.task}。`);
  if (run?.product) text += ' ' + T(`Product: ${run.product}.`, `商品：${run.product}。`);
  if (run?.error) text += ' ' + T(run.error.en, run.error.zh);
  p.classList.toggle('alarm', !!run?.error);
  if (p.textContent !== text) p.textContent = text;
}

// chart draws the axes, and between them the picture that the function between returns.
function chart(name, end, low, high, between) {
  const box = $(`[data-chart=${name}]`), w = Math.max(240, box.clientWidth), h = name === 'stock' ? Math.max(200, Math.min(340, innerHeight / 3)) : 180;
  const x0 = 58, y0 = h - 26, x = t => x0 + (w - x0 - 12) * (end ? t / end : 0), y = v => y0 - (y0 - 10) * (v - low) / (high - low || 1);
  let axes = '';
  for (const v of ticks(low, high, h / 60)) axes += `<line class="grid" x1="${x0}" x2="${w - 12}" y1="${y(v)}" y2="${y(v)}"/><text class="end" x="${x0 - 6}" y="${y(v) + 5}">${number(v)}</text>`;
  for (const t of ticks(0, end, w / 110)) axes += `<text class="mid" x="${x(t)}" y="${h - 6}">${+t.toFixed(2)} s</text>`;
  box.innerHTML = `<svg viewBox="0 0 ${w} ${h}" height="${h}" role="img" aria-label="${$(`#${name} figcaption`).textContent.replace(/["<>&]/g, '').trim()}"><defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" class="tint"/><line x1="0" x2="0" y1="0" y2="8" class="stripe"/></pattern></defs>${axes}${between(x, y)}</svg>`;
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
const label = (x, y, text) => `<text class="end alarm" x="${x - 8}" y="${y + 5}">${text}</text>`;

function replicas(point) {
  const by = point.replicas ?? {}, names = Object.keys(by).sort(), most = Math.max(1, ...Object.values(by));
  const list = document.createElement('dl');
  list.className = 'bars';
  for (const name of names) {
    const dt = document.createElement('dt'), dd = document.createElement('dd'), bar = document.createElement('span');
    dt.textContent = name;
    bar.className = 'share';
    bar.style.width = `${60 * by[name] / most}%`;
    dd.append(bar, number(by[name]));
    list.append(dt, dd);
  }
  const title = document.createElement('h3');
  title.textContent = T('Requests per replica', '各副本的请求数');
  $('#replicas').replaceChildren(title, list);
}

function figures(points, due) {
  const heads = T('s|requests|sold|failed|actual stock|correct stock|requests/s|p50 ms|p99 ms', '秒|请求|已售|失败|实际库存|正确库存|请求/秒|p50 毫秒|p99 毫秒').split('|');
  const row = p => [p.t.toFixed(2), p.done, p.sold, p.failed, p.count?.left ?? '?', p.count ? due(p) : '?', p.rate.toFixed(0), p.p50.toFixed(1), p.p99.toFixed(1)];
  $('#figures .wide').innerHTML = `<table><thead><tr>${heads.map(h => `<th scope="col">${h}</th>`).join('')}</tr></thead><tbody>${points.map(p => `<tr>${row(p).map(c => `<td>${c}</td>`).join('')}</tr>`).join('')}</tbody></table>`;
}
