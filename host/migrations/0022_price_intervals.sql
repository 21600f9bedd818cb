-- How often a recurring price is paid: every month, where nothing else is said.
ALTER TABLE payment_prices ADD COLUMN billing_interval TEXT CHECK (billing_interval IN ('month', 'year'));
