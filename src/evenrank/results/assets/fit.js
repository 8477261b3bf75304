// Fits the charts of every page to the available width.
const LETTER = 8;

/** A title broken into lines of at most `most` letters, as far as its words allow. */
function lines(text, most) {
  const found = [];
  for (const word of text.split(" ")) {
    const longer = found.length ? `${found.at(-1)} ${word}` : word;
    if (found.length && longer.length <= most) found[found.length - 1] = longer;
    else found.push(word);
  }
  return found.length > 1 ? found : text;
}

/** Calls back whenever the width of the window changes. */
function onWidth(redraw) {
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    redraw();
  });
}
