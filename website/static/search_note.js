// A browser does not let a page that was opened from a file read other files, so the search can't show excerpts there.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  if (!results || location.protocol !== "file:") return;
  const note = document.createElement("p");
  note.id = "search-note";
  note.append("Results have no excerpts, because this site was opened from a file. To see excerpts, serve its folder: ");
  const command = document.createElement("code");
  command.textContent = "python3 -m http.server --directory out/site";
  note.append(command, ".");
  results.before(note);
});
