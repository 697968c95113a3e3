// This script plays a recorded round: recorded has all states of two clients, and the moves between
// them. It is no module, because browsers do not load modules from files.
'use strict';
const T = (en, zh) => document.documentElement.lang === 'zh' ? zh : en;
const $ = selector => document.querySelector(selector);
const $$ = selector => [...document.querySelectorAll(selector)];
const states = ['idle', 'stopped', 'waiting', 'ended']; // like stepper.State

let path = [];    // the clients of all moves, 0 for A and 1 for B
let guess = 0;    // the predicted stock; 0 means no prediction
let shown = false; // the page shows the row and the answers
let said = '';
let player = 0;   // the timer of the solution

function make(tag, text, className = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}

// played returns the present state and all entries of the moves so far. moves is the number of moves
// until both clients had written or had their answers, like stepper.Moves.
function played() {
  let node = recorded.nodes[0], moves = 0;
  const log = [], written = [false, false];
  for (const client of path) {
    if (!node.end && !written.every(w => w)) moves++;
    const move = node.moves[client];
    for (const entry of move.log) {
      const { step, en } = recorded.lines[entry.line];
      if (step === 'written' || !step && en.startsWith('answer: sold')) written[entry.client] = true;
    }
    log.push(...move.log);
    node = recorded.nodes[move.to];
  }
  return { node, log, moves };
}

function textOf(entry) {
  const line = recorded.lines[entry.line];
  const answered = !line.step && line.en.startsWith('answer:');
  return answered && !shown ? T('has its answer', '得到了应答') : T(line.en, line.zh);
}

function draw() {
  const { node, log, moves } = played();
  ['A', 'B'].forEach((who, client) => {
    $('#go-' + who.toLowerCase()).disabled = player || !node.moves[client];
    drawClient(who, client, states[node.states[client]], log);
  });
  $('#back').disabled = $('#restart').disabled = !path.length;
  drawEnding(node);
  drawGoal(node, moves);
  $('#order tbody').replaceChildren(...log.map((entry, i) => {
    const row = document.createElement('tr');
    row.append(make('td', i + 1), make('td', 'AB'[entry.client]), make('td', recorded.lines[entry.line].step ?? '', 'words'),
      make('td', textOf(entry), 'words'), make('td', shown ? entry.row : '?'));
    return row;
  }));
}

function drawClient(who, client, state, log) {
  const own = log.map((entry, i) => ({ ...entry, number: i + 1 })).filter(entry => entry.client === client);
  $(`#part-${who} .taken`).replaceChildren(...own.map(entry => {
    const item = make('li', '');
    const step = recorded.lines[entry.line].step;
    item.append(make('span', entry.number + '.', 'soft'), ' ');
    if (step) item.append(make('code', step), ' ');
    item.append(textOf(entry));
    if (entry.commands) {
      const sent = make('ul', '', 'sent');
      for (const command of entry.commands) {
        const line = make('li', '');
        line.append(make('code', recorded.commands[command]));
        sent.append(line);
      }
      item.append(sent);
    }
    return item;
  }));
  const list = $(`#part-${who} .taken`);
  list.scrollTop = list.scrollHeight;
  $$(`#part-${who} .state`).forEach(p => { p.hidden = !p.classList.contains(state); });
  const steps = own.map(entry => recorded.lines[entry.line].step).filter(step => step);
  const last = state === 'ended' ? undefined : steps.at(-1), seen = steps.findLast(step => recorded.marks[step]);
  $(`#part-${who} .unseen`).hidden = !last || !!recorded.marks[last];
  const at = last && seen && recorded.marks[seen];
  mark(who, at && `${who}-${at}`, state === 'waiting' ? '…' : last === seen ? '▶' : '↳');
  $(`#part-${who} .next-line`).hidden = !at;
  $(`#part-${who} .next-line .waiting`).hidden = state !== 'waiting';
  $(`#part-${who} .next-line .stopped`).hidden = state === 'waiting';
  if (at) $(`#part-${who} .next-line code`).textContent = document.getElementById(`${who}-${at}`).textContent.trim();
}

function drawGoal(node, moves) {
  const reached = shown && node.end?.lost > 0;
  $('#reached').hidden = !reached;
  $('#goal').hidden = reached || !recorded.shortest;
  $('#no-goal').hidden = reached || recorded.shortest > 0;
  $('#moves').textContent = moves;
  $('#best').hidden = !recorded.shortest;
  $('#shortest').textContent = recorded.shortest;
  const left = recorded.left[recorded.nodes.indexOf(node)]; // null if a client tries again without end
  [$('#all').textContent, $('#lose').textContent] = left ?? [];
  $('#ahead').hidden = !left || Boolean(node.end);
}

// mark marks the line of code that a client runs next, and scrolls to it.
function mark(who, id, sign) {
  $$(`#client-${who} .at`).forEach(line => {
    line.classList.remove('at');
    line.removeAttribute('aria-current');
    line.removeAttribute('data-sign');
  });
  const line = id && document.getElementById(id);
  if (!line) return;
  line.classList.add('at');
  line.setAttribute('aria-current', 'step');
  line.dataset.sign = sign;
  centre(line);
}

function centre(line) {
  const box = line.closest('.listing');
  box.scrollTo({ top: line.offsetTop - box.clientHeight / 2 });
}

function drawEnding(node) {
  $$('[data-guess]').forEach(b => {
    b.disabled = shown;
    b.setAttribute('aria-pressed', guess === Number(b.dataset.guess));
  });
  $('#show').disabled = shown;
  $('#hidden').hidden = shown;
  $('#row').textContent = shown ? node.row : '?';
  $('#guessed').textContent = !shown || !node.end || !guess ? '' : guess === node.row
    ? '✓ ' + T('as you predicted', '与预测一致') : '✗ ' + T('you predicted', '你们预测的是') + ' ' + guess;
  const sentence = $('#sentence');
  sentence.hidden = !shown || !node.end;
  sentence.classList.toggle('alarm', !!node.end?.wrong);
  sentence.textContent = node.end ? (node.end.wrong ? '✗ ' : '✓ ') + T(node.end.words.en, node.end.words.zh) : '';
  $('#said').textContent = said;
  $('#said').hidden = !said;
}

// list shows the code of a client, like the page Step of the laboratory.
function list(who) {
  recorded.code.forEach((file, f) => {
    const code = document.createElement('pre');
    file.text.trimEnd().split('\n').forEach((text, n) => {
      const line = make('span', text + '\n');
      line.id = `${who}-${f}-${n + 1}`;
      code.append(line);
    });
    $(`#client-${who} .listing`).append(make('h3', file.name), code);
  });
}

function go(client) {
  if (!played().node.moves[client]) return;
  path.push(client);
  draw();
}

function begin() {
  clearInterval(player);
  path = [];
  player = guess = 0;
  shown = false;
  said = '';
  draw();
}

function play() {
  begin();
  const found = recorded.solution;
  if (!found) {
    said = T('No order of these steps loses an update. All of them were recorded.', '这些步骤的任何顺序都不会丢失更新。所有顺序都记录过。');
    draw();
    return;
  }
  said = T('Fewest switches between A and B that lose an update: ', '丢失更新所需的最少切换次数：') + found.switches;
  shown = true;
  player = setInterval(() => {
    if (path.length < found.moves.length) path.push(found.moves[path.length]);
    if (path.length === found.moves.length) {
      clearInterval(player);
      player = 0;
    }
    draw();
  }, 800);
  draw();
}

$('#go-a').addEventListener('click', () => go(0));
$('#go-b').addEventListener('click', () => go(1));
$('#back').addEventListener('click', () => { clearInterval(player); player = 0; path.pop(); draw(); });
$('#restart').addEventListener('click', begin);
$('#solution').addEventListener('click', play);
$('#show').addEventListener('click', () => { shown = true; draw(); });
$$('[data-guess]').forEach(b => b.addEventListener('click', () => { guess = Number(b.dataset.guess); draw(); }));
document.addEventListener('keydown', e => {
  if (e.repeat || e.ctrlKey || e.altKey || e.metaKey) return;
  if (e.key === 'u') $('#back').click();
  if (e.key === 'a' || e.key === 'b') $('#go-' + e.key).click();
});
document.addEventListener('toggle', () => $$('.listing .at').forEach(centre), true); // a closed listing cannot scroll
['A', 'B'].forEach(list);
draw();
