"""`secretballot keys`: who may ask a service, made and revoked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from secretballot.cli.options import AsJson
from secretballot.cli.outcome import EXIT_CODES, print_json, say
from secretballot.cli.serve import Config

if TYPE_CHECKING:
    from secretballot.service.api_keys import ApiKey, KeyRing


app = typer.Typer(
    help="Make, list and revoke the API keys of a service.",
    epilog=EXIT_CODES,
    no_args_is_help=False,
)

_CONFIG = Path("service.toml")


def _key_ring(config: Path) -> "KeyRing":
    from secretballot.service.api_keys import KeyRing
    from secretballot.service.settings import read_settings

    return KeyRing(read_settings(config).state)


def _public_fields(key: "ApiKey") -> dict[str, object]:
    """Return what may be shown of a key: all but the hash of its secret."""
    return {name: value for name, value in vars(key).items() if name != "sha256"}


def _refuse_unknown_datasets(config: Path, datasets: list[str]) -> None:
    from secretballot.exceptions import ParameterError
    from secretballot.service.settings import read_settings

    known = read_settings(config).datasets
    unknown = sorted(set(datasets) - {"*", *known})
    if unknown:
        raise ParameterError(
            f"--dataset {unknown[0]} is not in the settings; name one of {', '.join(known)}, or *."
        )


@app.command(epilog=EXIT_CODES)
def add(
    role: Annotated[
        Literal["analyst", "curator", "auditor"],
        typer.Option("--role", help="What the key may do: ask, oversee and ask, or oversee."),
    ],
    dataset: Annotated[
        list[str],
        typer.Option(
            "--dataset", metavar="NAME", help="Dataset it is for; repeat it, or * for all."
        ),
    ],
    owner: Annotated[str, typer.Option("--owner", metavar="TEXT", help="Whose key it is.")] = "",
    quota: Annotated[
        int | None,
        typer.Option("--quota", min=0, help="New questions it may ask of each dataset."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="DATE",
            help="Last day on which it holds, as 2030-12-31 (UTC); by default until it is revoked.",
        ),
    ] = None,
    config: Config = _CONFIG,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept.

    \b
    Example: secretballot keys add --role analyst --dataset registry --owner Ana
             --quota 200 --expires 2030-12-31
    """
    # a misspelt dataset would show only when the key is used
    _refuse_unknown_datasets(config, dataset)
    key, token = _key_ring(config).add(role, dataset, owner=owner, quota=quota, expires=expires)
    if as_json:
        print_json({**_public_fields(key), "key": token})
        return
    say(f"id           {key.id}")
    say(f"key          {token}")
    if key.expires_at is not None:
        say(f"expires      {key.expires_at}")


def _state_of(key: "ApiKey") -> str:
    from datetime import UTC, datetime

    if key.revoked_at is not None:
        return f"revoked {key.revoked_at[:19]}"
    if key.expires_at is None:
        return "valid"
    over = key.has_expired(datetime.now(UTC))
    return f"{'expired' if over else 'valid until'} {key.expires_at[:19]}"


@app.command("list", epilog=EXIT_CODES)
def list_keys(config: Config = _CONFIG, as_json: AsJson = False) -> None:
    """List all keys, oldest first, revoked ones too.

    \b
    Example: secretballot keys list
    """
    keys = _key_ring(config).keys()
    if as_json:
        print_json({"keys": [_public_fields(key) for key in keys]})
        return
    for key in keys:
        state = _state_of(key)
        quota = "" if key.quota is None else f"  quota {key.quota}"
        say(
            f"{key.id}  {key.role:<8} {','.join(key.datasets)}  made {key.made_at[:19]}  {state}"
            f"{quota}  {key.owner}"
        )
    if not keys:
        say("There are no keys yet; secretballot keys add makes one.")


@app.command(epilog=EXIT_CODES)
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key.")],
    config: Config = _CONFIG,
    as_json: AsJson = False,
) -> None:
    """Revoke a key for ever; it is refused from now on.

    \b
    Example: secretballot keys revoke 0f3c9a7b2d41
    """
    key = _key_ring(config).revoke(key_id)
    if as_json:
        print_json(_public_fields(key))
        return
    say(f"The key {key.id} is revoked.")


@app.command(epilog=EXIT_CODES)
def audit(config: Config = _CONFIG, as_json: AsJson = False) -> None:
    """Check the audit log from its first row on, and print it.

    \b
    Example: secretballot keys audit
    """
    from secretballot.service.audit_log import AuditLog
    from secretballot.service.settings import read_settings

    log = AuditLog(read_settings(config).state)
    try:
        number = log.check()
        rows = log.rows(None, after=0, most=number)
    finally:
        log.close()
    if as_json:
        print_json({"ok": True, "rows": [vars(row) for row in rows]})
        return
    for row in rows:
        say(
            f"{row.position:>6}  {row.at[:19]}  {row.key}  {row.action:<8}"
            f" {row.dataset}/{row.session}  {row.points} points, {row.new} new  {row.outcome}"
        )
    say(f"All {number} rows are as they were written.")
