// Sources of nearly the largest size that can be published.

/** Half a megabyte of objects, as a service's export looks. */
export const objects = JSON.stringify(
  Array.from({ length: 8000 }, (_, id) => ({ id, name: `Item ${id}`, tags: ['a', 'b'], price: id * 1.5, more: { ok: true } })),
);

/** 140,000 numbers in one array. */
export const numbers = JSON.stringify(Array.from({ length: 140_000 }, (_, at) => at));

/** 20,000 rows of a table. */
export const rows = ['Id,Name,Price,Remark', ...Array.from({ length: 20_000 }, (_, at) => `${at},Item ${at},${at}.50,some remark here`)].join('\n');
