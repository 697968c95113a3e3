// This script plays a recorded round: recorded has all states of two clients, and the moves between
// them. It is no module, because browsers do not load modules from files.
'use strict';
const T = (en, zh) => document.documentElement.lang === 'zh' ? zh : en;
const $ = selector => document.querySelector(selector);
const $$ = selector => [...document.querySelectorAll(selector)];
const states = ['idle', 'stopped', 'waiting', 'ended']; // like stepper.State

let path = [];    // the clients of all moves, 0 for A and 1 for B
let guess = 0;    // the predicted stock; 0 means no prediction
let hint = false; // the page shows how many orders lose an update
let said = '';
let player = 0;   // the timer of the solution

function make(tag, text, className = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}

// played returns the present state, and all entries of the moves so far. lostAt is the number of the
// move with which an update was lost, whatever moves follow.
function played() {
  let node = recorded.nodes[0], lostAt = 0;
  const log = [], written = [false, false];
  path.forEach((client, n) => {
    const move = node.moves[client];
    node = recorded.nodes[move.to];
    for (const seen of move.log) {
      const entry = { ...seen, ...recorded.lines[seen.line], move: n + 1 };
      entry.commands = (seen.commands ?? []).map(command => recorded.commands[command]);
      if (entry.step === 'written' || !entry.step && entry.en.startsWith('answer: sold')) written[entry.client] = true;
      log.push(entry);
    }
    const [all, lose] = recorded.left[move.to] ?? []; // null if a client tries again without end
    if (!lostAt && written.every(w => w) && (node.end ? node.end.lost > 0 : lose && lose === all)) lostAt = n + 1;
  });
  return { node, log, lostAt };
}

function draw() {
  const { node, log, lostAt } = played();
  const logs = [0, 1].map(client => log.filter(entry => entry.client === client));
  ['A', 'B'].forEach((who, client) => drawClient(who, client, states[node.states[client]], logs[client], node.moves[client]));
  drawRow(node, logs, lostAt);
  drawEnding(node, log, lostAt);
  $('#back').disabled = $('#restart').disabled = !path.length;
  $('#order tbody').replaceChildren(...log.map(entry => {
    const row = make('tr', ''), what = make('td', T(entry.en, entry.zh), 'words'), sent = make('ul', '', 'sent');
    for (const command of entry.commands) sent.append(make('li', ''));
    [...sent.children].forEach((item, i) => item.append(make('code', entry.commands[i])));
    if (entry.commands.length) what.append(sent);
    row.append(make('td', entry.move), make('td', 'AB'[entry.client]), make('td', entry.step ?? '', 'words'), what, make('td', entry.row));
    return row;
  }));
}

// drawClient draws the code of a client, like the page Step of the laboratory.
function drawClient(who, client, state, log, canStep) {
  const program = recorded.program[client].map(statement => ({ ...statement }));
  let next = 0, sent = [];
  for (const entry of log) {
    sent.push(...entry.commands.map(command => command.replace(/(?:`\w+`\.)?`(\w+)`/g, '$1')));
    if (waits(entry)) continue;
    const at = program.findIndex(statement => statement.step === (entry.step ?? ''));
    if (at < 0) continue;
    program[at].commands = sent;
    [sent, next] = [[], at + 1];
  }
  const lines = make('ol', '', 'program');
  program.forEach((statement, i) => {
    const line = make('li', '', i < next ? 'done' : i > next ? 'later' : 'next');
    lines.append(line);
    let inside = line;
    if (i === next) line.setAttribute('aria-current', 'step');
    if (i === next && canStep && !player) {
      inside = make('button', '', 'go');
      inside.id = 'go-' + who.toLowerCase();
      inside.append(make('kbd', who.toLowerCase()));
      inside.addEventListener('click', () => go(client));
      line.append(inside);
    }
    inside.append(...statement.code.map(code => make('code', T(code.en, code.zh))), ...(statement.commands ?? []).slice(0, 3).map(command => make('code', command, 'sent')));
    if (i === next && state === 'waiting') inside.append(make('strong', $('#waits-' + 'BA'[client]).innerHTML));
  });
  const title = make('h2', who + ' ');
  title.append(make('span', T('on', '在') + ' replica-' + (client + 1), 'soft'));
  const focused = document.activeElement.id === 'go-' + who.toLowerCase();
  $('#part-' + who).replaceChildren(title, make('p', (state === 'ended' ? '■ ' : '') + (variables(log) || $('#idle').innerHTML), 'says'), lines);
  if (focused) $('#go-' + who.toLowerCase())?.focus({ preventScroll: true });
  mark(who, state, log);
}

const waits = entry => !entry.step && entry.en.startsWith('waits');

// variables says what a client has read, and what it did last, like stepper.Variables.
function variables(log) {
  const last = log.at(-1), read = last && (last.step || waits(last)) && log.findLast(entry => entry.step === 'read');
  return [...new Set([read, last].filter(Boolean))].map(entry => T(entry.en, entry.zh)).join(T('; ', '；'));
}

function drawRow(node, logs, lostAt) {
  const holders = ['A', 'B'].filter((_, client) => {
    const last = logs[client].findLast(({ step }) => ['granted', 'after-setnx', 'released', 'unlocked'].includes(step))?.step;
    return states[node.states[client]] !== 'ended' && (last === 'granted' || last === 'after-setnx');
  });
  const locks = recorded.program[0].some(statement => statement.step === 'granted');
  $('#lock').textContent = !locks ? T('none', '没有锁') : holders.join(', ') || T('free', '空闲');
  $('.lock').classList.toggle('lost', holders.length > 1);
  $('#row').textContent = node.row;
  $('#row').parentElement.classList.toggle('lost', lostAt > 0 || !!node.end?.wrong);
  $$('[data-guess]').forEach(b => {
    b.disabled = node.end || lostAt;
    b.setAttribute('aria-pressed', guess === Number(b.dataset.guess));
  });
  $('#guessed').textContent = !node.end || !guess ? '' : guess === node.row
    ? T('✓ as you predicted', '✓ 与预测一致') : T('✗ you predicted', '✗ 你们预测的是') + ' ' + guess;
  const left = recorded.left[recorded.nodes.indexOf(node)];
  $('#ahead').hidden = !hint;
  $('#hint').hidden = hint;
  if (!$('#left')) return;
  [$('#all').textContent, $('#lose').textContent] = left ?? [];
  $('#left').hidden = !left || Boolean(node.end);
}

function drawEnding(node, log, lostAt) {
  const sentence = $('#sentence'), last = log.at(-1), taken = 10 - node.row, lost = lostAt > 0;
  sentence.hidden = !lost && !node.end;
  sentence.classList.toggle('lost', lost || !!node.end?.wrong);
  sentence.textContent = !lost && node.end && (node.end.wrong || taken !== 2) ? T(node.end.words.en, node.end.words.zh)
    : (lost ? '✗ ' : '✓ ') + T(`2 sold, ${taken} taken from stock`, `售出 2 件，库存减少 ${taken} 件`);
  $('#goal').hidden = !sentence.hidden;
  $('#other-orders').hidden = lost || !node.end || node.end.wrong;
  $('#try').hidden = sentence.hidden;
  $('#press').hidden = last || !sentence.hidden;
  $('#last').textContent = lost ? T(`Move ${lostAt}: an update is lost.`, `第 ${lostAt} 步：丢失了一次更新。`)
    : last && !node.end ? T(`Move ${last.move}: `, `第 ${last.move} 步：`) + 'AB'[last.client] + ' ' + T(last.en, last.zh) : '';
  $('#said').textContent = said;
  $('#said').hidden = !said;
}

// mark marks the line of code that a client runs next.
function mark(who, state, log) {
  const line = $(`.listing [data-sign*="${who}"]`);
  if (line) line.dataset.sign = line.dataset.sign.replace(who, '');
  const at = state !== 'ended' && recorded.marks[log.findLast(entry => recorded.marks[entry.step])?.step];
  const now = at && document.getElementById('line-' + at);
  if (now) now.dataset.sign = (now.dataset.sign ?? '') + who;
  $$('.listing [data-sign]').forEach(l => l.classList.toggle('at', l.dataset.sign));
  centre();
}

function centre() {
  const line = $('.listing .at'), box = $('.listing');
  if (line) box.scrollTop = line.offsetTop - box.clientHeight / 2;
}

function go(client) {
  if (player || !played().node.moves[client]) return;
  path.push(client);
  draw();
}

function begin() {
  clearInterval(player);
  path = [];
  player = guess = 0;
  said = '';
  draw();
}

function play() {
  begin();
  const found = recorded.solution;
  said = T('Fewest switches between A and B that lose an update: ', '丢失更新所需的最少切换次数：') + found.switches;
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

recorded.code.forEach((file, f) => {
  const code = make('pre', '');
  file.text.trimEnd().split('\n').forEach((text, n) => {
    const line = make('span', text + '\n');
    line.id = `line-${f}-${n + 1}`;
    code.append(line);
  });
  $('.listing').append(make('h3', file.name), code);
});
$('#back').addEventListener('click', () => { clearInterval(player); player = 0; path.pop(); draw(); });
$('#hint').addEventListener('click', () => { hint = true; draw(); });
$('#restart').addEventListener('click', begin);
$('#solution')?.addEventListener('click', play);
$$('[data-guess]').forEach(b => b.addEventListener('click', () => { guess = Number(b.dataset.guess); draw(); }));
document.addEventListener('keydown', e => {
  if (e.repeat || e.ctrlKey || e.altKey || e.metaKey) return;
  $$('main :is(button, a)').find(b => b.querySelector('kbd')?.textContent === e.key && !b.hidden)?.click();
});
document.addEventListener('toggle', centre, true); // a closed listing cannot scroll
draw();
