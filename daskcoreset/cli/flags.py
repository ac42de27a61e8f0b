"""Messages of the library, said by the flags of the program."""

from __future__ import annotations

import re
from collections.abc import Container

# What is advised in Python, and what a user of the program does instead. These come first: the
# names in them are those of functions.
_ADVICE = (
    (r", or an object, for example \w+\(.*?\)", ""),
    (
        r'on_invalid="drop" of build, of estimators.*? are made',
        "--on-invalid drop",
    ),
    (r" \(on_invalid is about X\)", " (--on-invalid is about the features)"),
    (r"convert it, for example with X\.astype\(.*", "choose columns of numbers by --columns."),
    (
        r"(?<=; )pass a (dense )?vector, for example (with )?(y|sample_weight)\..*",
        "name another array or column of IN.",
    ),
    (
        r"; convert it with \.astype\((.*?)\)",
        r"; convert it to \1",
    ),
    (r"\bpass one for every row of X, or the name of .*", "name a column or array of IN."),
    (r"\bpass one for every row of X\.", "name an array of IN, or a path."),
    (r"; name some of these\.$", "; name some of these, those with a comma by --column."),
    (r"which y, sample_weight or groups names, too\b", "which --labels or --weights names, too"),
    (r"Leave it out of columns\.", "Leave it out of --columns."),
    (r"; pass (?:X\[|columns=).*", "; leave --columns out."),
    (r"; read it with dask\.dataframe\..*", "; write it as Parquet first."),
    (r"; open it with xarray\.open_dataset\(.*", ": cubes are read in Python alone."),
    (
        r"; open it with CoresetTree\.open$",
        "; `daskcoreset tree window` makes a coreset of it, and `daskcoreset tree list` shows it",
    ),
    (r"; open it with Coreset\.from_zarr$", "; `daskcoreset info` shows it"),
    (r"; open it with \w+\.\w+$", "; which is opened in Python alone"),
    (r"; load it with \w+\.\w+.*? and pass its points.*", "; give the data instead."),
    (
        r", or pass the array itself(?:, or a cube as xarray\.open_zarr opens it)?\.",
        ", or give the path of an array of the store.",
    ),
    (
        r", and X has no columns or arrays by name; pass the array\.",
        ", and IN has no columns or arrays by name.",
    ),
    (r", or pass the array, dataset\[:\]", ""),
    (
        r", commit the session that it is in, pass the array, or close the client",
        ", or leave out --scheduler and --workers",
    ),
    (r"; pass xarray\.open_zarr\(.*", ": cubes are read in Python alone, as xarray opens them."),
    (r"\bleave columns out, and pass the columns of the array.*", "leave --columns out."),
    (r"; pass it, or pass solutions", "; pass it"),
    (r"(?<=') \(\w+Error: .*\)(?=; give the path)", ""),
    (r"(?<=') \(\w+Error: (?=.*\); )", " ("),
    (r"\.npz file, or an array\.", ".npz file."),
    (r", for example X\.reshape\(.*", "."),
    (r"\bPass a larger epsilon, or a size\b", "Pass a --size"),
    (r"; pass seconds, or None for none", "; pass seconds, or leave it out"),
    (r"(?<=pass another name), or call replace", ""),
    (r"\bCoresetTree\.open opens a tree that is there", "`daskcoreset tree append` takes it"),
    (r"\bthose in tree\.leaves\b", "those that `daskcoreset tree list` shows"),
    (r"\bthe times of tree\.leaves say\b", "`daskcoreset tree list` says"),
    (r"\bconvert y\b", "convert them"),
    (r"\bleave out compute=False and dry_run=True\b", "leave out --dry-run"),
    (r", and pass an int as size or none\b", ", and pass a number as --size or leave it out"),
)

# Arguments as they stand in messages, and what is typed.
_NAMES = (
    (r'\bon_invalid="?(\w+)"?', r"--on-invalid \1"),
    (r"""\bsize=(["']?)(auto|\d+)\1""", r"--size \2"),
    (r'\bmetric="?(\w+)"?', r"--metric \1"),
    (r'\bmethod="?(\w+)"?', r"--method \1"),
    (r"\bdiameter=(\S+)", r"--diameter \1"),
    (r"\bdiameter (?=must\b|nor\b)", "--diameter "),
    (r"\bmax_points\b", "--size"),
    (r'\bmissing_chunks="?(\w+)"?', r"--missing-chunks \1"),
    (r"""\bsampling=["']?(\w+)["']?""", r"--sampling \1"),
    (r"\bpasses=(\d)", r"--passes \1"),
    (r"\btimeout=(\S+)( seconds) have\b", r"the \1\2 of --timeout have"),
    (r"^timeout\b", "--timeout"),
    (r"^time\b", "--time"),
    (r"\ba larger timeout\b", "a larger --timeout"),
    (r"\boverwrite=True", "--overwrite"),
    (r"\bn_(?:clusters|components)=", "--clusters "),
    (r"\bn_(?:clusters|components)\b", "--clusters"),
    (r"\bmax_clusters\b", "--clusters"),
    (r"\brandom_state\b", "--seed"),
    (r"\bsample_weight\b", "--weights"),
    (r"\bstorage_options\b", "--storage-option"),
    (r"(?<![\w'\"/.-])(?:y)(?= (?:is|are|has|holds|and|must|cannot)\b)", "--labels"),
    (r"\bfrom y=", "from --labels "),
    (r"\bpass (--clusters, or )?y\b", r"pass \1--labels"),
    (r"\bname one of them as y\b", "name one of them by --labels"),
    (r"\bcolumns=\[\.\.\.\]", "--columns"),
    (r"^columns (?=has|is|names)", "--columns "),
    (r"\bunless a size is given\b", "unless --size is given"),
    (r"\ba smaller size\b", "a smaller --size"),
    (r"(?<=--clusters 10), or solutions", ""),
    (r"\bor y to judge\b", "or --labels to judge"),
    (r"\bInput X(?= contains\b)", "IN"),
    (r"\bof X\b", "of IN"),
    (r"\bthe group X\b", "the group IN"),
    (r"(?<![\w'\"/.-])X(?=:? (?:is|has|holds|must|names|matches|cannot|could|and)\b)", "IN"),
)


# Advice that only commands with a flag can follow.
_FOR_SOME = (
    ("--labels", r" name one of them by --labels,"),
    ("--on-invalid", r", or leave such rows out: --on-invalid drop"),
)


def in_flags(message: str, flags: Container[str] | None = None) -> str:
    """Say an error or warning of the library by the flags of the program.

    Parameters
    ----------
    message : str
    flags : container of str, optional
        Those that the command has; None for all.

    Examples
    --------
    >>> in_flags("method 'kmeans' needs n_clusters; pass n_clusters.")
    "method 'kmeans' needs --clusters; pass --clusters."
    >>> in_flags('clean the data, or pass on_invalid="drop", which leaves such rows out.')
    'clean the data, or pass --on-invalid drop, which leaves such rows out.'
    """
    for pattern, said in (*_ADVICE, *_NAMES):
        message = re.sub(pattern, said, message)
    for flag, advice in _FOR_SOME:
        if flags is not None and flag not in flags:
            message = re.sub(advice, "", message)
    return message
