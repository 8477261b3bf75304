// What every page does: it unpacks what is packed, hides columns that do not fit, and switches its theme. Texts are only
// ever inserted as text nodes.
const byId = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** The text that is packed in an element. */
function unpacked(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** Calls back when an element gets a width, another one, or is shown for the first time. */
function onWidth(element, act) {
  let width = 0;
  const seen = ([{ contentRect }]) => {
    const now = Math.floor(contentRect.width);
    if (!now || now === width) return;
    width = now;
    act();
  };
  new ResizeObserver(seen).observe(element);
}

// --- tables ----------------------------------------------------------------------------------------------------------

/** Hides the columns of a table that do not fit into its box, with a button that shows them: then the box scrolls. */
function fitColumns(box) {
  const table = box.querySelector("table");
  const button = el("button", { type: "button", class: "quiet", "aria-expanded": "false", hidden: true });
  let all = false;

  function fit() {
    for (const cell of table.querySelectorAll(".beyond")) cell.classList.remove("beyond");
    const folded = getComputedStyle(table).display === "block";
    const heads = [...table.rows[0].cells];
    const first = folded ? -1 : heads.findIndex((head) => head.offsetLeft + head.offsetWidth > box.clientWidth + 1);
    button.hidden = first < 0;
    if (first < 0) return;
    const shown = Math.max(first, 2);
    const more = heads.length - shown;
    button.textContent = all ? "Fewer columns" : `${more} more ${more === 1 ? "column" : "columns"}`;
    if (!all) for (const row of table.rows) for (const cell of [...row.cells].slice(shown)) cell.classList.add("beyond");
  }

  button.addEventListener("click", () => {
    all = !all;
    button.setAttribute("aria-expanded", String(all));
    // A box that scrolls is reached with the keyboard, and has a name.
    for (const [name, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": table.caption?.textContent ?? "Table" })) {
      if (all) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
    fit();
  });
  box.after(button);
  onWidth(box, fit);
}

for (const box of document.querySelectorAll(".scroll")) fitColumns(box);

// --- theme -----------------------------------------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function startTheme(button) {
  const name = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  name();
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  dark.addEventListener("change", name);
}

if (byId("theme")) startTheme(byId("theme"));
