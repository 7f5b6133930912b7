// While a page loads, its elements arrive one by one and push each other about. So they are
// hidden until nothing has moved for 12 frames, at most until five seconds after the title.
{
  const root = document.documentElement;
  let titled, height, still = 0; // `still` counts frames, which last longer on a busy machine
  root.classList.add("arriving");
  root.classList.toggle("projector", location.search.includes("projector=1"));
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
// On a phone, the menu covers the page, so it closes once somebody has chosen a page. A step of
// a batch is longer than the screen, so the next one is read from its beginning.
addEventListener("click", ({ target }) => {
  if (innerWidth >= 768) return;
  if (target.closest(".stSidebar a"))
    document.querySelector("[data-testid=stSidebarCollapseButton] button").click();
  if (target.closest(".st-key-step_buttons"))
    document.querySelector(".st-key-batch_step").scrollIntoView();
});
// Without this, a page would begin where the last one was scrolled to, if it is just as long.
const push = history.pushState;
history.pushState = function (...to) {
  const before = location.pathname;
  push.apply(this, to);
  if (location.pathname !== before) document.querySelector(".stMain")?.scrollTo(0, 0);
};
