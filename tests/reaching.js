(print) => {
  const problems = [];
  const width = document.documentElement.clientWidth;
  const say = (what, node) => problems.push(`${what}: ${node.textContent.trim().slice(0, 40)}`);
  const rects = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [...range.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
  };
  const inside = (rect, left, right) => rect.left >= left - 1 && rect.right <= right + 1;
  const hiddenInPrint = (node) => print && node.closest('#queries, .controls, .top, .quiet');
  // A box that scrolls once its columns were asked for.
  const scroller = (node) => {
    const box = node.closest('.scroll');
    return box && box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === 'auto' ? box : null;
  };

  const whole = document.documentElement.scrollWidth;
  if (whole > width) problems.push(`page is ${whole} wide`);

  // The boxes around a node that cut off what stands in them, and whether below, too. Asked once for each node.
  const boxes = new Map([[null, []], [document.body, []]]);
  const cutting = (node) => {
    if (!boxes.has(node)) {
      const style = getComputedStyle(node);
      const open = style.overflowX === 'visible' || style.display === 'inline';
      const own = open ? [] : [[node.getBoundingClientRect(), style.overflowY === 'hidden']];
      boxes.set(node, [...own, ...cutting(node.parentElement)]);
    }
    return boxes.get(node);
  };

  // Each text stands within the page, whether in a table or not, and no box that it stands in cuts it off.
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const holder = text.parentElement;
    if (!text.data.trim() || holder.closest('noscript, option, caption') || hiddenInPrint(holder)) continue;
    // What it is about is shortened on a phone; its runs stand in the table.
    if (scroller(holder) || holder.closest('.facts, .plot')) continue;
    // Headings that are only heard: each figure has its own, see below.
    const head = holder.closest('thead');
    if (head && getComputedStyle(head).position === 'absolute') continue;
    for (const rect of rects(text)) {
      if (!inside(rect, 0, width)) say('beside the page', text);
      for (const [edge, hidden] of cutting(holder)) {
        if (!inside(rect, edge.left, edge.right)) say('cut off', text);
        if (hidden && rect.bottom > edge.bottom + 1) say('cut off below', text);
      }
    }
  }

  // Each cell of a table is seen, nothing lies over it, and a figure's heading stands above it or beside it.
  const every = [...document.querySelectorAll('main tbody :is(td, th)')];
  const cells = every.filter((cell) => cell.textContent.trim() && !hiddenInPrint(cell));
  const tables = new Map();
  const shownAs = (table) => {
    if (!tables.has(table)) {
      const heads = [...(table.tHead?.rows[0].cells ?? [])].map((head) => head.innerText.trim().replace(/\s+/g, ' '));
      tables.set(table, [getComputedStyle(table).display, heads]);
    }
    return tables.get(table);
  };
  for (const cell of cells) {
    const moved = scroller(cell);
    if (moved && rects(cell).length) moved.scrollLeft += rects(cell)[0].left - moved.getBoundingClientRect().left - 30;
    const [rect] = rects(cell);
    if (!rect || getComputedStyle(cell).visibility !== 'visible') { say('not shown', cell); continue; }
    const [display, heads] = shownAs(cell.closest('table'));
    if (display === 'block' && cell.tagName === 'TD') {
      const label = getComputedStyle(cell, '::before').content;
      const wanted = JSON.stringify(heads[cell.cellIndex]);
      if (wanted !== '""' && label !== wanted) say(`not labelled ${wanted}, but ${label}`, cell);
    }
    let top = rect.top;
    if (top < 60 || rect.bottom > innerHeight - 10) {
      scrollTo({ top: scrollY + top - innerHeight / 3, behavior: 'instant' });
    }
    const [here] = rects(cell);
    const hit = document.elementFromPoint((here.left + here.right) / 2, (here.top + here.bottom) / 2);
    if (!hit || !cell.contains(hit)) say(`under ${hit && hit.tagName}`, cell);
  }
  for (const row of new Set(cells.map((cell) => cell.parentElement))) {
    const parts = [...row.cells].flatMap((cell) => rects(cell).map((rect) => [cell, rect]));
    parts.forEach(([cell, rect], place) => parts.slice(0, place).forEach(([other, box]) => {
      const across = Math.min(rect.right, box.right) - Math.max(rect.left, box.left);
      const down = Math.min(rect.bottom, box.bottom) - Math.max(rect.top, box.top);
      if (other !== cell && across > 1 && down > 2) say('over another', cell);
    }));
  }

  // Charts and what is written in them.
  for (const chart of document.querySelectorAll('main svg.marks')) {
    if (hiddenInPrint(chart)) continue;
    const frame = chart.getBoundingClientRect();
    if (!frame.width || !inside(frame, 0, width)) problems.push(`chart from ${frame.left} to ${frame.right}`);
    const scale = frame.width / chart.viewBox.baseVal.width;
    for (const text of chart.querySelectorAll('text')) {
      const rect = text.getBoundingClientRect();
      if (!text.textContent.trim() || !rect.width) continue;
      if (!inside(rect, frame.left, frame.right)) say('beside the chart', text);
      if (scale * parseFloat(getComputedStyle(text).fontSize) < 8) say('too small', text);
    }
  }
  return [...new Set(problems)];
}
