  // A table of CSV gets search, filter and sorting from a module that only such pages load.
  addEventListener('DOMContentLoaded', () => {
    const region = document.querySelector('.csv>main>.tools+.scroll');
    if (region) import('TABLE_PATH').then(({ furnish }) => furnish(region), () => {});
  });
