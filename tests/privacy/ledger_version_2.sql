-- A ledger of format version 2, as `sqlite3 .dump` shows it, with the two numbers of its header.
PRAGMA application_id = 1396853844;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE account (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    dataset TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('record', 'user', 'label')),
    neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
    epsilon REAL NOT NULL CHECK (epsilon > 0),
    delta REAL NOT NULL CHECK (delta >= 0 AND delta < 1),
    composition TEXT NOT NULL,
    filter_order REAL,
    created_at TEXT NOT NULL
);
INSERT INTO "account" VALUES(1,'registry','record','add-remove',1.0,1.0e-05,'basic',NULL,'2026-11-22T08:01:36.007976+00:00');
CREATE TABLE closing (
    reservation INTEGER PRIMARY KEY REFERENCES reservation (id),
    position INTEGER NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('committed', 'forfeited')),
    released BLOB CHECK ((released IS NOT NULL) = (state = 'committed')),
    released_sha256 TEXT CHECK ((released_sha256 IS NOT NULL) = (state = 'committed')),
    reason TEXT CHECK ((reason IS NOT NULL) = (state = 'forfeited')),
    used TEXT,
    closed_at TEXT NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32)
);
INSERT INTO "closing" VALUES(1,4,'committed',X'616E73776572','0db52f4076c082518412afd3dd3576e2cb0c63703fd7fed5e23ade60efef31d9',NULL,NULL,'2026-11-22T08:01:36.144755+00:00',X'C7B5306CA1AD4BB7B7459CF7CC143A584CD43B8AD7BDB5024C0361DBC9CFF51A');
INSERT INTO "closing" VALUES(2,5,'forfeited',NULL,NULL,'broken off',NULL,'2026-11-22T08:01:36.167844+00:00',X'2AE58CBE6CE2FA59A2E79A6E8E52B2A0FE91D942F0ED34D52B3CA3893513AC6F');
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32)
);
INSERT INTO "head" VALUES(1,7,X'343B32BE947D1CB0DCCD3CA8330C9E63F1ECD977219CB41AA6A6B83B9FAE0B6E');
CREATE TABLE part (
    reservation INTEGER NOT NULL REFERENCES reservation (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    position INTEGER NOT NULL UNIQUE,
    question BLOB NOT NULL,
    answer BLOB NOT NULL,
    answered_at TEXT NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32),
    PRIMARY KEY (reservation, number),
    UNIQUE (reservation, question)
);
INSERT INTO "part" VALUES(3,1,6,X'6669727374',X'30','2026-11-22T08:01:36.204260+00:00',X'FCA35348949C9D41ECA32004C19A3B46113D8FF89F9018A0D202124E758A49A7');
INSERT INTO "part" VALUES(3,2,7,X'7365636F6E64',X'31','2026-11-22T08:01:36.204260+00:00',X'343B32BE947D1CB0DCCD3CA8330C9E63F1ECD977219CB41AA6A6B83B9FAE0B6E');
CREATE TABLE reservation (
    id INTEGER PRIMARY KEY,
    position INTEGER NOT NULL UNIQUE,
    request TEXT NOT NULL UNIQUE,
    purpose TEXT NOT NULL,
    events TEXT NOT NULL,
    epsilon REAL NOT NULL CHECK (epsilon > 0),
    delta REAL NOT NULL CHECK (delta >= 0 AND delta < 1),
    reserved_at TEXT NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32)
);
INSERT INTO "reservation" VALUES(1,1,'answered','test','[{"count": 1, "epsilon": 0.1, "event": "pure", "version": 1}]',0.1,1.0e-09,'2026-11-22T08:01:36.049044+00:00',X'BCD9C6B251F849D0B653A0240A7E9324BCAFE44EA4B138F3A9B55C025B1B0345');
INSERT INTO "reservation" VALUES(2,2,'forfeited','test','[{"count": 1, "epsilon": 0.1, "event": "pure", "version": 1}]',0.1,1.0e-09,'2026-11-22T08:01:36.084595+00:00',X'F446679E641D349E24BF009BD4CD1B6209AF529855E4CE3AA562038D851B2768');
INSERT INTO "reservation" VALUES(3,3,'open','test','[{"count": 1, "epsilon": 0.1, "event": "pure", "version": 1}]',0.1,1.0e-09,'2026-11-22T08:01:36.109593+00:00',X'381D8DBE7E5965BC93AF85CA3CAD211AE99DBA275C2C0D717AD11A94AB0B8037');
CREATE TRIGGER account_no_DELETE BEFORE DELETE ON account 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: DELETE on account is refused'); END;
CREATE TRIGGER account_no_UPDATE BEFORE UPDATE ON account 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: UPDATE on account is refused'); END;
CREATE TRIGGER head_no_DELETE BEFORE DELETE ON head 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: DELETE on head is refused'); END;
CREATE TRIGGER head_no_UPDATE BEFORE UPDATE ON head WHEN new.position <> old.position + 1 OR new.id <> old.id
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: UPDATE on head is refused'); END;
CREATE TRIGGER reservation_no_DELETE BEFORE DELETE ON reservation 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: DELETE on reservation is refused'); END;
CREATE TRIGGER reservation_no_UPDATE BEFORE UPDATE ON reservation 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: UPDATE on reservation is refused'); END;
CREATE TRIGGER part_no_DELETE BEFORE DELETE ON part 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: DELETE on part is refused'); END;
CREATE TRIGGER part_no_UPDATE BEFORE UPDATE ON part 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: UPDATE on part is refused'); END;
CREATE TRIGGER closing_no_DELETE BEFORE DELETE ON closing 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: DELETE on closing is refused'); END;
CREATE TRIGGER closing_no_UPDATE BEFORE UPDATE ON closing 
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: UPDATE on closing is refused'); END;
CREATE TRIGGER account_no_INSERT BEFORE INSERT ON account WHEN EXISTS (SELECT 1 FROM account)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: INSERT on account is refused'); END;
CREATE TRIGGER head_no_INSERT BEFORE INSERT ON head WHEN EXISTS (SELECT 1 FROM head)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: INSERT on head is refused'); END;
CREATE TRIGGER reservation_no_INSERT BEFORE INSERT ON reservation WHEN new.position <> (SELECT position FROM head) + 1 OR EXISTS (SELECT 1 FROM reservation WHERE id = new.id OR request = new.request OR position = new.position)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: INSERT on reservation is refused'); END;
CREATE TRIGGER part_no_INSERT BEFORE INSERT ON part WHEN new.position <> (SELECT position FROM head) + 1 OR EXISTS (SELECT 1 FROM part WHERE position = new.position OR (reservation = new.reservation AND (number = new.number OR question = new.question)))
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: INSERT on part is refused'); END;
CREATE TRIGGER closing_no_INSERT BEFORE INSERT ON closing WHEN new.position <> (SELECT position FROM head) + 1 OR EXISTS (SELECT 1 FROM closing WHERE reservation = new.reservation OR position = new.position)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: INSERT on closing is refused'); END;
CREATE TRIGGER part_no_late BEFORE INSERT ON part
WHEN EXISTS (SELECT 1 FROM closing WHERE reservation = new.reservation)
BEGIN SELECT RAISE(ABORT, 'a closed reservation takes no further part'); END;
COMMIT;
