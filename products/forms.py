"""What people fill in about products and posts."""

import re
from typing import Any

from django import forms
from django.utils import timezone

from integrations.outlets import OUTLETS
from integrations.sources.base import UNPRINTABLE
from integrations.sources.github import NoSuchRepository, find_repository
from products import posts
from products.tables import Post, Product

# owner/name or its address; a name of dots alone would be another path of GitHub's API
REPOSITORY = r"(?:https?://github\.com/)?([\w-]+/(?!\.{1,2}/?$)[\w.-]+?)(?:\.git)?/?"


class ProductForm(forms.Form):
    """What a product is and what to do when a week or a deadline goes by."""

    name = forms.CharField(max_length=80, help_text="What your readers call it.")
    link = forms.URLField(
        required=False,
        max_length=500,
        assume_scheme="https",
        label="Link",
        help_text="Where a post should send people. It is kept whole in every post.",
    )
    pitch = forms.CharField(
        required=False,
        max_length=300,
        label="In one sentence",
        help_text="What it does and for whom, in your words.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    audience = forms.CharField(
        required=False, max_length=200, label="Who reads your posts", help_text="Such as: runners."
    )
    voice = forms.CharField(
        required=False,
        max_length=500,
        label="Voice",
        help_text="How it should sound. Such as: we, dry, no emoji.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    quiet_week = forms.ChoiceField(
        label="When there is nothing to tell",
        choices=[
            ("skip", "Skip the slot and say that it was a quiet week"),
            ("evergreen", "Write a post from the sentence and the link above"),
        ],
        widget=forms.RadioSelect,
        initial="skip",
    )
    late_approval = forms.ChoiceField(
        label="When you approve after the slot",
        choices=[
            ("hold", "Send it right away"),
            ("next_slot", "Send it at the outlet's next slot"),
        ],
        widget=forms.RadioSelect,
        initial="hold",
    )
    late_limit_minutes = forms.TypedChoiceField(
        label="When SlothPost itself is late",
        help_text="After an outage, an approved post that is later than this waits for you.",
        coerce=int,
        choices=[
            (30, "Hold what is more than 30 minutes late"),
            (120, "Hold what is more than 2 hours late"),
            (720, "Hold what is more than 12 hours late"),
        ],
        initial=120,
    )

    def clean(self) -> dict[str, Any]:
        """The fields without what cannot be printed, and so cannot stand in a feed either."""
        cleaned = super().clean() or {}
        return {
            name: UNPRINTABLE.sub("", value) if isinstance(value, str) else value
            for name, value in cleaned.items()
        }

    @staticmethod
    def initial_of(product: Product) -> dict[str, Any]:
        return {name: getattr(product, name) for name in ProductForm.base_fields}


class RepositoryForm(forms.Form):
    """Which GitHub repository to follow: `owner/name`, its address, or its numeric id."""

    repository = forms.CharField(
        max_length=200,
        label="GitHub repository",
        help_text="owner/name, its address, or its numeric id.",
    )

    def clean_repository(self) -> tuple[str, str]:
        """The numeric id and the name."""
        text = self.cleaned_data["repository"].strip()
        if re.fullmatch(r"[1-9][0-9]{0,17}", text):
            return text, f"repository {text}"
        found = re.fullmatch(REPOSITORY, text, re.ASCII)
        if found is None:
            raise forms.ValidationError("Write it as owner/name, such as acme/app.")
        try:
            return find_repository(found[1], timezone.now())
        except NoSuchRepository as error:
            raise forms.ValidationError(str(error)) from error


class VercelProjectForm(forms.Form):
    """Which Vercel project to follow, by its id."""

    project_id = forms.RegexField(
        r"^prj_[A-Za-z0-9]{1,60}$",
        label="Vercel project id",
        help_text="Under Settings, General of the project: it begins with prj_.",
        error_messages={
            "invalid": "A project id begins with prj_, followed by letters and digits."
        },
    )
    project_name = forms.CharField(
        required=False, max_length=100, label="Its name", help_text="Only shown to you."
    )


class TextForm(forms.Form):
    """A post's text as a person has it before them, and the hash of the text that was stored when
    their page was made. Fields carry the outlet as a prefix: a slot's texts share one form."""

    seen = forms.CharField(required=False, max_length=64)
    text = forms.CharField(required=False, strip=False, max_length=20_000)

    def clean_text(self) -> str:
        return tidy(self.cleaned_data["text"])

    def was_edited(self) -> bool:
        """Whether the text is another than the one that the form was made with."""
        posted = Post(outlet=self.prefix, text=tidy(self["text"].value() or ""))
        return bool(posts.text_hash(posted) != self["seen"].value())


class DecisionForm(TextForm):
    """What a person decides about one post."""

    action = forms.ChoiceField(
        choices=[
            (name, name) for name in ("approve", "save", "reject", "rewrite", "take-back", "posted")
        ]
    )
    reason = forms.CharField(required=False, max_length=500)
    permalink = forms.URLField(required=False, max_length=500, assume_scheme="https")


class TextLengthForm(forms.Form):
    """A text to be counted as its outlet counts."""

    outlet = forms.ChoiceField(choices=[(name, name) for name in OUTLETS])
    text = forms.CharField(required=False, strip=False, max_length=20_000)


def tidy(text: str) -> str:
    """A text as it is kept: browsers send line ends their own way, and edges hold no words."""
    return UNPRINTABLE.sub("", text.replace("\r\n", "\n")).strip()
