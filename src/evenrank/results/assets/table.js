// Sorts the table of figures: ascending, descending, original order. Empty cells stay last.
{
  const table = byId("table");
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];

  const key = (row, column) => {
    const sort = row.cells[column].dataset.sort;
    return sort === "" ? null : Number.isNaN(Number(sort)) ? sort : Number(sort);
  };

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function sort(column, direction) {
    headings.forEach((heading, place) => heading.setAttribute("aria-sort", place === column ? direction : "none"));
    const rows = [...original];
    table.toggleAttribute("data-sorted", direction !== "none");
    if (direction !== "none") {
      const sign = direction === "ascending" ? 1 : -1;
      rows.sort((first, second) => {
        const [a, b] = [key(first, column), key(second, column)];
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * compare(a, b);
      });
    }
    body.append(...rows);
  }

  const next = { none: "ascending", ascending: "descending", descending: "none" };
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => sort(column, next[heading.getAttribute("aria-sort")]));
  });
}
