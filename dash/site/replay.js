// This script plays a recorded round: recorded has all states of two clients, drawn by the templates of the page Step,
// and the moves between them.
'use strict';
const $ = selector => document.querySelector(selector);
const T = (en, zh) => document.documentElement.lang === 'zh' ? zh : en;
const html = part => recorded.parts[part][T(0, 1)].map(line => recorded.lines[line]).join('\n');

let path = [];    // the clients of all moves, 0 for A and 1 for B
let guess = 0;    // the predicted stock; 0 means no prediction
let hint = false; // the page shows how many orders lose an update
let said = '';
let player = 0;   // the timer of the solution

// played returns the present state, and the numbers of the moves in the order of their entries. lostAt is the number
// of the move with which an update was lost, whatever moves follow.
function played() {
  let node = recorded.nodes[0], lostAt = 0;
  const entries = [];
  path.forEach((client, n) => {
    const move = node.moves[client];
    node = recorded.nodes[move.to];
    entries.push(...move.entries.map(entry => ({ entry, move: n + 1 })));
    if (node.lost) lostAt ||= n + 1;
  });
  return { node, entries, lostAt };
}

function draw() {
  const { node, entries, lostAt } = played(), focus = document.activeElement.id;
  for (const id in node.parts) $('#part-' + id).innerHTML = html(node.parts[id]);
  $('#order tbody').innerHTML = entries.map(({ entry }) => html(entry)).join('');
  const rows = [...$('#order tbody').rows];
  rows.forEach((row, i) => { row.cells[0].textContent = entries[i].move; });
  drawLast(rows.at(-1), lostAt);
  drawGuess(node, lostAt);
  $('#part-ahead').hidden = !hint;
  $('#hint').hidden = hint;
  $('#undo').disabled = $('#restart').disabled = !path.length;
  $('#try').hidden = !lostAt && !node.over;
  $('#said').textContent = said;
  $('#said').hidden = !said;
  document.getElementById(focus)?.focus({ preventScroll: true });
  mark(node.marks);
}

// drawLast shows the last entry, and its move: another order of the steps may lead to the same state.
function drawLast(row, lostAt) {
  const move = $('#last .move'), did = $('#last .did');
  if (move) move.textContent = lostAt || path.length;
  if (did) did.textContent = row.cells[1].textContent + ' ' + row.cells[3].firstChild.textContent;
}

function drawGuess(node, lostAt) {
  for (const left of [8, 9, 10]) {
    $('#guess-' + left).disabled = node.over || lostAt;
    $('#guess-' + left).setAttribute('aria-pressed', guess === left);
  }
  $('#guessed').textContent = !node.over || !guess ? '' : guess === node.row
    ? T('✓ as you predicted', '✓ 与预测一致') : T('✗ you predicted', '✗ 你们预测的是') + ' ' + guess;
}

function go(client) {
  if (!player && played().node.moves[client]) path.push(client);
}

function stop() {
  clearInterval(player);
  player = 0;
}

function begin() {
  stop();
  path = [];
  guess = 0;
  said = '';
}

function play() {
  begin();
  const found = recorded.solution;
  said = T('Fewest switches between A and B that lose an update: ', '丢失更新所需的最少切换次数：') + found.switches;
  player = setInterval(() => {
    if (path.length < found.moves.length) path.push(found.moves[path.length]);
    else stop();
    draw();
  }, 800);
}

const actions = {
  'go-a': () => go(0), 'go-b': () => go(1), 'guess-8': () => { guess = 8; }, 'guess-9': () => { guess = 9; }, 'guess-10': () => { guess = 10; },
  undo() { stop(); path.pop(); }, hint() { hint = true; }, restart: begin, solve: play,
};
document.addEventListener('click', e => {
  const act = actions[e.target.closest('button')?.id];
  if (!act) return;
  act();
  draw();
});
$('#part-listing').innerHTML = html(recorded.listing);
draw();
