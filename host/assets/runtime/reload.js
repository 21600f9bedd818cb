  // On the server of `svc dev` alone: the page loads itself again once a change of the folder is there.
  {
    const [{ responseStart }] = performance.getEntriesByType('navigation');
    const loadedAt = performance.timeOrigin + responseStart;
    let shown, stream, opened;
    const hear = ({ data }) => {
      const { version, at } = JSON.parse(data);
      // A reload that was told before this page came has nothing new for it; both clocks are this machine's.
      if (shown === undefined && at <= loadedAt) shown = version;
      if (version === shown) return;
      stream.close();
      location.reload();
    };
    const follow = () => {
      stream = new EventSource(`/_svc/dev/reload?slug=${slug}`);
      stream.onopen = () => (opened = true);
      stream.onmessage = hear;
      // Some browsers give up where nobody answers, as while `svc dev` starts again.
      stream.onerror = () => opened && stream.readyState === 2 && setTimeout(follow, 1000);
    };
    follow();
  }
