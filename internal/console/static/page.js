// What every page does with a script: on a narrow screen the menu shows where one is, and a
// table with sentences in it reads as cards. A form is sent once by a double click.

// label gives each cell the name of its column, for the cards. A row or a cell that is no
// longer drawn as one keeps its role.
export function label(root) {
  for (const table of root.querySelectorAll(".scroll > table")) {
    if (!table.querySelector("tbody .wrap")) continue;

    const names = [...table.querySelectorAll("thead th")].map((h) => h.textContent.trim());
    table.classList.add("cards");
    table.setAttribute("role", "table");
    for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
    for (const head of table.querySelectorAll("thead th")) head.setAttribute("role", "columnheader");

    for (const row of table.querySelectorAll("tr")) {
      row.setAttribute("role", "row");
      if (row.cells.length !== names.length || row.closest("thead")) continue;

      [...row.cells].forEach((cell, i) => {
        cell.setAttribute("role", cell.scope === "row" ? "rowheader" : "cell");
        if (names[i]) cell.dataset.label = names[i];
      });
    }
  }
}

// centre scrolls the menu, and not the page, to the section that is shown.
function centre() {
  const item = document.querySelector(".menu [aria-current]");
  if (!item) return;

  const menu = item.closest(".menu"), at = item.getBoundingClientRect(), all = menu.getBoundingClientRect();
  menu.scrollLeft += at.left + at.width / 2 - all.left - all.width / 2;
}

// once keeps a second click from sending a form again while its answer is under way. An answer that is a file leaves the
// page as it is, so the form is taken again after some seconds.
const underWay = 5000; // ms
function once(event) {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;

  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }

  form.dataset.sent = "yes";
  setTimeout(() => { delete form.dataset.sent; }, underWay);
}

document.addEventListener("submit", once);
label(document);
centre();
matchMedia("(max-width: 56rem)").addEventListener("change", centre);
