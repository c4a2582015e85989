-- Addresses of forwards used to be kept with a ticket that let a browser in. A
-- ticket is a secret, and is not kept any more: what is here loses it.

UPDATE events
SET body = CAST(json_set(CAST(body AS TEXT), '$.url',
  substr(json_extract(CAST(body AS TEXT), '$.url'), 1, instr(json_extract(CAST(body AS TEXT), '$.url'), '?dlwb_token=') - 1)) AS BLOB)
WHERE name = 'forward_opened' AND json_valid(CAST(body AS TEXT))
  AND instr(json_extract(CAST(body AS TEXT), '$.url'), '?dlwb_token=') > 0;
