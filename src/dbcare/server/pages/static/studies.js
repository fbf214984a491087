"use strict";

// Hide the studies that do not match the search.
const search = document.getElementById("search");
search?.addEventListener("input", () => {
  const query = search.value.trim().toLowerCase();
  let matches = 0;
  for (const row of document.querySelectorAll("tr.study")) {
    row.hidden = !row.textContent.toLowerCase().includes(query);
    matches += row.hidden ? 0 : 1;
  }
  document.getElementById("none-found").hidden = matches > 0;
});
