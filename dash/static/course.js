// This script presents a lesson: one part at a time, full-screen, in large type.
import { $, $$ } from './dash.js';

const slides = $$('.slide').filter(s => !s.classList.contains('notes'));
const presenting = () => document.body.classList.contains('presenting');
let at = 0;

function show(to) {
  at = Math.max(0, Math.min(to, slides.length - 1));
  slides.forEach((s, i) => s.classList.toggle('now', i === at));
  $('#where').textContent = (at + 1) + ' / ' + slides.length;
  $('#back').disabled = at === 0;
  $('#next').disabled = at === slides.length - 1;
  scrollTo(0, 0);
}

function present(on) {
  document.body.classList.toggle('presenting', on);
  ['#back', '#where', '#next'].forEach(id => { $(id).hidden = !on; });
  if (on) {
    // A browser may refuse the full screen. The large type helps without it as well.
    document.documentElement.requestFullscreen?.().catch(() => {});
    show(at);
  } else if (document.fullscreenElement) {
    document.exitFullscreen();
  }
}

$('#present').addEventListener('click', () => present(!presenting()));
$('#next').addEventListener('click', () => show(at + 1));
$('#back').addEventListener('click', () => show(at - 1));
document.addEventListener('fullscreenchange', () => { if (!document.fullscreenElement && presenting()) present(false); });
document.addEventListener('keydown', e => {
  if (!presenting() || e.target.matches('input, select, textarea')) return;
  if (e.key === 'ArrowRight' || e.key === 'PageDown') show(at + 1);
  if (e.key === 'ArrowLeft' || e.key === 'PageUp') show(at - 1);
  if (e.key === 'Escape') present(false);
});
