// This script draws the charts of the running run.
import { $, $$, T, on } from './dash.js';

let run = null, shown = -1;

on('run', state => {
  const following = !run || shown >= run.series.length - 1;
  run = state;
  run.series ??= [];
  if (following || shown >= run.series.length) shown = run.series.length - 1;
  tabs();
  draw();
});

on('tick', ({ total, point }) => {
  const now = run?.series.at(-1);
  if (!now) return;
  now.total = total;
  now.points.push(point);
  if (shown === run.series.length - 1) draw();
});

document.addEventListener('click', e => {
  const button = e.target.closest('button');
  if (button?.dataset.choose) {
    $$('input[name=strategy]').forEach(box => { box.checked = button.dataset.choose === 'core' && 'core' in box.dataset; });
  }
  if (button?.dataset.series) {
    shown = +button.dataset.series;
    tabs();
    draw();
  }
});
$('#figures').addEventListener('toggle', draw);
addEventListener('resize', draw);

function tabs() {
  const p = $('#series');
  p.hidden = run.series.length < 2;
  p.replaceChildren(...run.series.map((s, i) => {
    const b = document.createElement('button');
    b.dataset.series = i;
    b.textContent = s.strategy;
    b.setAttribute('aria-pressed', i === shown);
    return b;
  }));
}

const number = n => Math.round(n).toLocaleString('en');

function draw() {
  const s = run?.series[shown];
  status(s);
  const points = s?.points ?? [];
  for (const id of ['stock', 'rate', 'times', 'replicas', 'figures']) $('#' + id).hidden = !points.length;
  if (!points.length) return;
  const end = points.at(-1).t;
  const due = p => run.stock - p.count.sold;
  const known = points.filter(p => p.count);
  chart('stock', end, Math.min(0, ...known.map(due)), run.stock, (x, y) => {
    const left = [[0, run.stock], ...known.map(p => [p.t, p.count.left])], owed = [[0, run.stock], ...known.map(p => [p.t, due(p)])];
    // Only a stock above the correct one is a loss. A lower stock may come from sales in progress.
    const above = left.map(([t, v], i) => [t, Math.max(v, owed[i][1])]);
    const last = known.at(-1), gap = last ? Math.max(0, last.count.left - due(last)) : 0;
    return area('gap', above, owed, x, y) + line('due', owed, x, y) + line('left', left, x, y) +
      (gap ? label(x(end), (y(last.count.left) + y(due(last))) / 2, T(`${number(gap)} lost`, `丢失 ${number(gap)}`)) : '');
  });
  chart('rate', end, 0, Math.max(1, ...points.map(p => p.rate)), (x, y) => line('rate', points.map(p => [p.t, p.rate]), x, y));
  chart('times', end, 0, Math.max(1, ...points.map(p => p.p99)), (x, y) =>
    line('p99', points.map(p => [p.t, p.p99]), x, y) + line('p50', points.map(p => [p.t, p.p50]), x, y));
  replicas(points.at(-1));
  if ($('#figures').open) figures(points, due);
}

function status(s) {
  const p = $('#status');
  if (!run) return;
  if (!s) {
    p.textContent = !run.of ? T('Nothing has run yet. Choose strategies and start.', '尚未运行。请选择策略并开始。') :
      run.running ? T('The run is starting.', '运行即将开始。') :
        T('The run ended before its first request.', '运行在第一个请求之前就结束了。') + (run.error ? ' ' + T(run.error.en, run.error.zh) : '');
    return;
  }
  const last = s.points.at(-1);
  const done = !last ? '' : run.running || last.done < s.total ? `${number(last.done)} / ${number(s.total)}` : number(s.total);
  let text;
  if (run.running) {
    text = T(`${s.strategy} (${run.series.length} of ${run.of}): ${done}`, `${s.strategy}（第 ${run.series.length}/${run.of} 个）：${done}`);
  } else {
    text = T(`${s.strategy} finished: ${done} requests.`, `${s.strategy} 已完成：${done} 个请求。`);
  }
  if (run.running && last?.owner) {
    text += ' ' + T(`The lock is held by ${last.owner.task}.`, `持锁者：${last.owner.task}。`);
  } else if (last?.last.client) {
    text += ' ' + T(`Last owner of the lock: client ${last.last.client} on ${last.last.replica}.`, `最后持锁者：${last.last.replica} 上的客户端 ${last.last.client}。`);
  }
  if (run.product) text += ' ' + T(`Product: ${run.product}.`, `商品：${run.product}。`);
  if (run.error) text += ' ' + T(run.error.en, run.error.zh);
  p.textContent = text;
}

// chart draws the axes, and between them the picture that the function between returns.
function chart(name, end, low, high, between) {
  const box = $(`[data-chart=${name}]`), w = Math.max(240, box.clientWidth), h = name === 'stock' ? 280 : 180;
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
  $('#figures div').innerHTML = `<table><thead><tr>${heads.map(h => `<th scope="col">${h}</th>`).join('')}</tr></thead><tbody>${points.map(p => `<tr>${row(p).map(c => `<td>${c}</td>`).join('')}</tr>`).join('')}</tbody></table>`;
}
