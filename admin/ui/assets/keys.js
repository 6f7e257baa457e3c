// Keys: j and k go to the next and the previous page, / to the search field. Pages work without them.
const follow = (rel) => document.querySelector(`a[rel="${rel}"]`)?.click();
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
  if (e.key === "j") follow("next");
  if (e.key === "k") follow("prev");
  if (e.key === "/") {
    e.preventDefault();
    document.querySelector("input[type=search]")?.focus();
  }
});
