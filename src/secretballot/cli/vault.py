"""`secretballot vault`: encrypt the vault of a run or a session, and look after its key."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot.cli.options import AsJson, OpensVault
from secretballot.cli.outcome import EXIT_CODES, print_json, say
from secretballot.exceptions import ParameterError

if TYPE_CHECKING:
    from secretballot.encryption.key_sources import KeySource
    from secretballot.encryption.whole_vaults import VaultFiles

__all__ = ["app"]

app = typer.Typer(
    help="Encrypt the vault of a run or a session, and change its key.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    no_args_is_help=False,
)

Vault = Annotated[
    Path, typer.Argument(metavar="VAULT", help="A vault, or the folder of a run that holds one.")
]


def _vault_key_source(key: str | None) -> "KeySource":
    from secretballot.encryption.key_sources import key_source, source_in_environment

    found = key_source(key) if key else source_in_environment()
    if found is None:
        raise ParameterError(
            "No key was given; name its source with --vault-key or in SECRETBALLOT_VAULT_KEY."
        )
    return found


def _print_files(files: "VaultFiles", *, as_json: bool) -> None:
    if as_json:
        print_json(vars(files))
        return
    if files.key_id is None:
        say("encrypted    no")
    else:
        state = "yes" if files.whole and not files.plain else "in part; repeat encrypt, or decrypt"
        say(f"encrypted    {state}")
        say(f"key          {files.key_id}")
        say(f"files        {len(files.encrypted)} encrypted")
        for name in files.plain:
            say(f"in the clear {name}")
    for name in files.open_by_rule:
        say(f"never        {name}")
    for name in files.links:
        say(f"a link       {name}: what it leads to is left as it is")


@app.command("new-key", epilog=EXIT_CODES)
def new_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the key.")],
    as_json: AsJson = False,
) -> None:
    """Make a key for vaults, in a file that its owner alone may read. Without it, what it encrypts
    is lost: keep a copy elsewhere.

    \b
    Example: secretballot vault new-key vault.key
    """
    from secretballot.encryption.key_sources import write_new_key

    key_id = write_new_key(file)
    if as_json:
        print_json({"file": str(file), "key_id": key_id})
        return
    say(f"key          {file}: keep it secret, and a copy of it elsewhere")
    say(f"name         {key_id}")


@app.command(epilog=EXIT_CODES)
def status(vault: Vault, as_json: AsJson = False) -> None:
    """Say which files of a vault are encrypted; no key is needed.

    \b
    Example: secretballot vault status registry-vault
    """
    from secretballot.encryption.whole_vaults import files_of

    _print_files(files_of(vault), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def encrypt(vault: Vault, vault_key: OpensVault = None, as_json: AsJson = False) -> None:
    """Encrypt the files of a vault, while nothing uses it. Repeat it where it broke off.

    What was in the clear may stay on the disk as free space: a new vault that begins with
    --vault-key leaves nothing.

    \b
    Example: secretballot vault encrypt registry-vault --vault-key vault.key
    """
    from secretballot.encryption.whole_vaults import encrypt_vault

    _print_files(encrypt_vault(vault, _vault_key_source(vault_key)), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def decrypt(vault: Vault, vault_key: OpensVault = None, as_json: AsJson = False) -> None:
    """Put the files of a vault back in the clear, while nothing uses it.

    \b
    Example: secretballot vault decrypt registry-vault --vault-key vault.key
    """
    from secretballot.encryption.whole_vaults import decrypt_vault

    _print_files(decrypt_vault(vault, _vault_key_source(vault_key)), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def rekey(
    vault: Vault,
    new: Annotated[
        str,
        typer.Option("--new-key", metavar="SOURCE", help="Source of the new key, as --vault-key."),
    ],
    vault_key: OpensVault = None,
    as_json: AsJson = False,
) -> None:
    """Have a vault opened by another key from now on. One small file is written; programs that are
    at work go on.

    An old copy of encryption.json is still opened by the old key: where that has leaked, decrypt,
    and encrypt anew.

    \b
    Example: secretballot vault rekey registry-vault --vault-key old.key --new-key new.key
    """
    from secretballot.encryption.key_sources import key_source
    from secretballot.encryption.whole_vaults import rekey_vault

    key_id = rekey_vault(vault, _vault_key_source(vault_key), key_source(new))
    if as_json:
        print_json({"vault": str(vault), "key_id": key_id})
        return
    say(f"key          {key_id}")


@app.command(epilog=EXIT_CODES)
def read(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of an encrypted vault.")],
    vault_key: OpensVault = None,
) -> None:
    """Write the content of a file of an encrypted vault to the standard output. NOT RELEASABLE.

    \b
    Example: secretballot vault read study/vault/diagnostics/margins.csv --vault-key vault.key
    """
    from secretballot.encryption.unlocked import open_vault
    from secretballot.exceptions import DataError
    from secretballot.vault import read_secret

    if vault_key is not None:
        open_vault(file.parent, _vault_key_source(vault_key))
    content = read_secret(file)
    if content is None:
        raise DataError(f"There is no file {os.fspath(file)!r}; give one that is in a vault.")
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
