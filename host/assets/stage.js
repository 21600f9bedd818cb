// Shows one page that the landing page hands in, and says how far it is scrolled. It runs in an opaque origin.
addEventListener('message', function show({ source, data }) {
  if (source !== parent || typeof data?.html !== 'string') return;
  removeEventListener('message', show);
  document.open();
  document.write(data.html);
  document.close();
  const tell = () => parent.postMessage({ top: scrollY }, '*');
  scrollTo(0, data.top);
  addEventListener('scroll', tell, { passive: true });
  tell();
});
