// What the theme leaves out for keyboards and screen readers.
const SCROLLING = ".md-typeset__scrollwrap, div:has(> table.dataframe), pre > code";
document$.subscribe(() => {
  document.querySelector(".md-search").setAttribute("aria-label", "Search");
  for (const each of document.querySelectorAll(SCROLLING)) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
  }
});

// Lessons in frames are light or dark like the page.
function tellFrames() {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  for (const each of document.querySelectorAll(".playground")) each.contentWindow.postMessage({ theme }, "*");
}
new MutationObserver(tellFrames).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
document.addEventListener("load", tellFrames, true);
