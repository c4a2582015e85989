-- What a provider needs to send the very same call again, and to look for what
-- it made. JSON of the provider's own.
ALTER TABLE ledger ADD COLUMN detail BLOB;
