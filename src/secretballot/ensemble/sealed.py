"""What holds private values and gives them to nobody by accident."""

from typing import ClassVar, NoReturn


class Sealed:
    """Refuse every way in which Python, numpy or a notebook would take values out of an object
    unasked.

    A subclass says in `_refusal` who refuses, with a place for what, and what to do instead; and
    shows in its repr what is public.
    """

    __slots__ = ()
    _refusal: ClassVar[str]

    def _refuse_to_show(self, what: str) -> NoReturn:
        raise TypeError(self._refusal.format(what))

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>".replace("<private>", "&lt;private&gt;")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        self._refuse_to_show("become an array")

    def __iter__(self) -> NoReturn:
        self._refuse_to_show("be iterated")

    def __len__(self) -> NoReturn:
        self._refuse_to_show("be measured")

    def __getitem__(self, item: object) -> NoReturn:
        self._refuse_to_show("be indexed")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse_to_show("be searched")

    def __float__(self) -> NoReturn:
        self._refuse_to_show("become a number")

    def __bool__(self) -> bool:
        return True

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse_to_show("be pickled or copied")

    def __getstate__(self) -> NoReturn:
        self._refuse_to_show("be taken apart")

    def __dataframe__(self, *args: object, **kwargs: object) -> NoReturn:
        self._refuse_to_show("become a table")
