-- Whether a checkout cookie was given under a name that only the page's own host can set (`__Host-`). Any sibling below the sites domain can
-- set the others, so that they show what was bought with them and take nothing new.
ALTER TABLE payment_sessions ADD COLUMN host_cookie INTEGER NOT NULL DEFAULT 0;

-- Addresses were compared in the lower case of all alphabets, where the Kelvin sign is a `k`. Now in ASCII's alone, as `lower` does.
UPDATE payment_sessions SET email_key = lower(trim(email, char(9, 10, 12, 13, 32))) WHERE email IS NOT NULL;
