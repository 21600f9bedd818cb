  // Files that visitors bring. Only this kind of request tells how far an upload is.
  const fileUrl = (action, id = '', query = '') =>
    `${base}/api/files/${encodeURIComponent(action)}${id && '/'}${encodeURIComponent(id)}${query && '?'}${query}`;
  svc.files = {
    upload: (action, file, { params, onProgress, signal } = {}) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const query = new URLSearchParams();
        if (file.name) query.set('name', file.name);
        if (params) query.set('params', JSON.stringify(params));
        const request = new XMLHttpRequest();
        const abort = () => request.abort();
        request.open('POST', fileUrl(action, '', query.toString()));
        request.responseType = 'json';
        request.setRequestHeader('Accept', 'application/json');
        request.setRequestHeader('Content-Type', 'application/octet-stream');
        request.upload.onprogress = ({ loaded, total }) => onProgress?.({ loaded, total });
        request.onload = () => {
          const { status, response: answer } = request;
          if (status === 201 && answer) return resolve(answer);
          const { code = 'internal', detail = request.statusText } = answer || {};
          const wait = Number(request.getResponseHeader('Retry-After')) || undefined;
          reject(new SvcError(code, detail, status, answer, wait));
        };
        request.onerror = () => reject(new SvcError('unreachable', 'The upload did not arrive.'));
        request.onabort = () => reject(signal.reason);
        request.onloadend = () => signal?.removeEventListener('abort', abort);
        signal?.addEventListener('abort', abort);
        request.send(file);
      }),
    url: (action, id, { size } = {}) => fileUrl(action, id, size ? `size=${size}` : ''),
  };
