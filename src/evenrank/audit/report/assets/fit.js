// What the charts of every page need to fit into their room.
const LETTER = 8;

/** A title in lines of no more than `most` letters, where its words allow it. */
function lines(text, most) {
  const found = [];
  for (const word of text.split(" ")) {
    const longer = found.length ? `${found.at(-1)} ${word}` : word;
    if (found.length && longer.length <= most) found[found.length - 1] = longer;
    else found.push(word);
  }
  return found.length > 1 ? found : text;
}

/** Calls back when the window's width has changed. */
function onWidth(redraw) {
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    redraw();
  });
}
