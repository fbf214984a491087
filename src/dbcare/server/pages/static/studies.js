"use strict";

// Hide the studies that do not match what was typed.
const find = document.getElementById("find");
find?.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  let found = 0;
  for (const row of document.querySelectorAll("tr.study")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
    found += row.hidden ? 0 : 1;
  }
  document.getElementById("none-found").hidden = found > 0;
});
