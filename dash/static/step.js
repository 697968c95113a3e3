// This script keeps the round's strategy in the form and in the address.
import { $, on } from './dash.js';

on('mark', window.mark);

// A new round, also one of another page, shows its strategy. A reload keeps it.
const round = () => $('#part-round [data-round]')?.dataset ?? {};
let known = round().round;
document.addEventListener('put', () => {
  const { round: number, strategy } = round();
  if (!number || number === known) return;
  known = number;
  $('select[name=strategy]').value = strategy;
  history.replaceState(null, '', '?strategy=' + strategy);
});
