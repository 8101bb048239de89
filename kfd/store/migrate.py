"""Forward-only migrations: ``schema/NNNN_purpose.sql``, each in one transaction with its version number."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from kfd.base.failure import CallerError

__all__ = ["APPLICATION_ID", "Migration", "migrate", "migrations"]

APPLICATION_ID = 0x6B666431
"""Marks the file as ours ("kfd1"), so that another program's database is never migrated by mistake."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """All migrations in order."""
    found = []
    for entry in resources.files("kfd.store").joinpath("schema").iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text("utf-8")))
    return sorted(found, key=lambda migration: migration.version)


def migrate(path: Path) -> int:
    """Bring a database file to the newest schema and return its version.

    A backup is made first when an older version is found. Raises CallerError for a file that is not ours or
    comes from a newer kfd: the old program must not touch it.
    """
    known = migrations()
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION_ID:
            raise CallerError(f"{path} is not a kfd database", mend="name another state folder with --state-dir")
        if version > known[-1].version:
            raise CallerError(
                f"{path} has schema {version}, this kfd knows up to {known[-1].version}",
                mend="start the newer kfd again, or restore the backup made before the upgrade",
            )
        if version and version < known[-1].version:
            backup = path.with_suffix(f".before-{known[-1].version}.sqlite3")
            backup.unlink(missing_ok=True)
            connection.execute("VACUUM INTO ?", (str(backup),))
        for migration in known:
            if migration.version > version:
                connection.executescript(
                    f"BEGIN IMMEDIATE;\nPRAGMA application_id = {APPLICATION_ID};\n{migration.sql}\n"
                    f"PRAGMA user_version = {migration.version};\nCOMMIT;"
                )
        return known[-1].version
    finally:
        connection.close()
