// While a page arrives, its parts are loaded one by one and push each other about. They are
// shown once nothing has moved for a moment, or five seconds after the title at the latest.
{
  const root = document.documentElement;
  let titled, height, still = 0; // frames: on a busy machine they take longer
  root.classList.add("arriving");
  const look = (now) => {
    const page = document.querySelector(".stMainBlockContainer");
    if (page?.querySelector("h1") || now > 6000) titled ??= now; // an error has no title
    const isLoading = document.querySelector("[data-testid^=stSkeleton]")
      || !document.querySelector("[data-test-script-state=notRunning]")
      || [...document.images].some((image) => !image.complete)
      || [...document.querySelectorAll(".stPrintGraphic")] // charts
        .some((chart) => chart.offsetParent && !chart.offsetHeight)
      || height !== page?.scrollHeight;
    height = page?.scrollHeight;
    still = isLoading || !titled ? 0 : still + 1;
    if (still > 12 || now > titled + 5000) root.classList.remove("arriving");
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
// On a phone, the menu covers the page, so it closes once somebody has chosen a page.
addEventListener("click", ({ target }) => {
  if (innerWidth < 768 && target.closest(".stSidebar a"))
    document.querySelector("[data-testid=stSidebarCollapseButton] button").click();
});
