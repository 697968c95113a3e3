// This script opens the page of a strategy in a drawer, so that the class keeps its place. A click for a new tab
// opens the page itself.
import { $, T } from './dash.js';

const drawer = document.body.appendChild(document.createElement('dialog'));
drawer.className = 'drawer';

document.addEventListener('click', async e => {
  if (e.target === drawer) drawer.close(); // outside its content
  const link = e.target.closest('a[href^="/dash/learn/"]:not([href*="/primitives/"])');
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey || drawer.contains(link) || document.body.dataset.topic === 'strategies') return;
  e.preventDefault();
  const answer = await fetch(link.href).catch(() => null);
  if (!answer?.ok) {
    location.href = link.href;
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html'), content = $('main', page);
  const head = content.firstElementChild, close = document.createElement('button'), whole = document.createElement('a');
  close.type = 'button';
  close.textContent = T('Close', '关闭');
  close.addEventListener('click', () => drawer.close());
  whole.href = link.href.replace(/(#.*)?$/, '#code');
  whole.textContent = T('The code, as a page', '代码（整页）');
  $('details:has(#code)', content).remove();
  head.className = 'actions';
  head.replaceChildren(close, whole);
  drawer.setAttribute('aria-label', link.textContent.trim());
  drawer.replaceChildren(...content.children);
  drawer.showModal();
});
