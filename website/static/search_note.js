// A browser does not let a page that was opened from a file read other files, so the search can't show excerpts there.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results || location.protocol !== "file:") return;
  const note = document.createElement("div");
  note.id = "search-note";
  note.className = "admonition note";
  note.innerHTML = `<p class="admonition-title">No excerpts</p>
    <p>This site was opened from a file. To see excerpts of what is found, serve its folder, and open the address
    that this prints: <code>python3 -m http.server --directory out/site</code></p>`;
  results.before(note);
});
