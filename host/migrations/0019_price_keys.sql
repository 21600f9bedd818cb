-- A price may have a key, a name that the project's owner chose: pages and checkouts name the price by it, also after another price
-- has taken its place. NULL: none, as all earlier prices.
ALTER TABLE payment_prices ADD COLUMN key TEXT;

-- One active price has a key; one that is off the catalog keeps it for its history.
CREATE UNIQUE INDEX payment_prices_by_key ON payment_prices (project_id, key) WHERE key IS NOT NULL AND active;
