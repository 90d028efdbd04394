"""What people fill in about products and posts."""

import re
from typing import Any

from django import forms
from django.conf import settings
from django.utils import timezone

from integrations.errors import Failure
from integrations.outlets import OUTLETS
from integrations.sources.app_store import find_app
from integrations.sources.base import UNPRINTABLE, Choice
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
    never_mention = forms.CharField(
        required=False,
        max_length=1000,
        label="Words never to mention",
        help_text="One a line. What happened is left out if it mentions one, and so is a post.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    private_detail = forms.ChoiceField(
        label="What to keep of private work",
        required=False,
        choices=[("", "Only titles"), ("full", "Titles and texts")],
        widget=forms.RadioSelect,
        help_text="From a private repository nothing is written before you allow it.",
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
    """Which public GitHub repository to follow: `owner/name` or its address. By its numeric id
    only where every user may see everything."""

    repository = forms.CharField(
        max_length=200,
        label="Public GitHub repository",
        help_text="owner/name, or its address.",
    )

    def clean_repository(self) -> Choice:
        text = self.cleaned_data["repository"].strip()
        if settings.FOLLOW_PRIVATE_REPOSITORIES and re.fullmatch(r"[1-9][0-9]{0,17}", text):
            return Choice(text, f"repository {text}")
        found = re.fullmatch(REPOSITORY, text, re.ASCII)
        if found is None:
            raise forms.ValidationError("Write it as owner/name, such as acme/app.")
        try:
            return Choice(*find_repository(found[1], timezone.now()))
        except NoSuchRepository as error:
            raise forms.ValidationError(str(error)) from error

    def chosen(self) -> Choice:
        chosen: Choice = self.cleaned_data["repository"]
        return chosen


class VercelProjectForm(forms.Form):
    """Which Vercel project to follow, by its id: only where every user may see everything."""

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

    def chosen(self) -> Choice:
        number, name = self.cleaned_data["project_id"], self.cleaned_data["project_name"]
        return Choice(number, name or number, private=True)


class AppForm(forms.Form):
    """Which app in the store to follow, by its id or the link to its page."""

    app = forms.CharField(
        max_length=300,
        label="App",
        help_text="The link to its page in the App Store, or its number.",
    )

    def clean_app(self) -> Choice:
        try:
            return find_app(self.cleaned_data["app"], timezone.now())
        except Failure as failure:
            raise forms.ValidationError(failure.reason) from failure

    def chosen(self) -> Choice:
        chosen: Choice = self.cleaned_data["app"]
        return chosen


# What can be followed without an account, by the name of its source.
PUBLIC_FORMS: dict[str, type[RepositoryForm | VercelProjectForm | AppForm]] = {
    "github": RepositoryForm,
    "vercel": VercelProjectForm,
    "app_store": AppForm,
}


# Of a field for what is spelled in one way only.
NO_WORDS = {"autocapitalize": "none", "spellcheck": "false"}


class ConnectForm(forms.Form):
    """What a service has to be told before an account can be connected there."""

    def answer(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.cleaned_data.items()}


class AppStoreKeyForm(ConnectForm):
    """An API key of App Store Connect. What was given as the key is not put into a page again."""

    name = forms.CharField(
        required=False, max_length=100, label="Name", help_text="Only shown to you."
    )
    issuer_id = forms.CharField(
        required=False,
        max_length=60,
        label="Issuer ID",
        help_text="Above the list of keys. An individual key has none.",
    )
    key_id = forms.CharField(max_length=20, label="Key ID", help_text="Ten letters and digits.")
    private_key = forms.CharField(
        required=False,
        max_length=5_000,
        label="Private key, as text",
        help_text="Paste the .p8 file here, or choose it below.",
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
    )
    file = forms.FileField(required=False, label="Or the .p8 file", max_length=200)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["private_key"].widget.format_value = lambda _: None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        upload = cleaned.pop("file", None)
        if upload is not None and not cleaned.get("private_key"):
            cleaned["private_key"] = upload.read(5_000).decode("ascii", "replace")
        if not cleaned.get("private_key") and not self.errors:
            self.add_error("private_key", "Paste the key, or choose its file.")
        return cleaned


class BlueskyForm(ConnectForm):
    """A handle and an app password, which is not put into a page again."""

    handle = forms.CharField(
        max_length=300,
        label="Handle",
        help_text="Such as name.bsky.social.",
        widget=forms.TextInput(attrs=NO_WORDS),
    )
    password = forms.CharField(
        max_length=200,
        label="App password",
        help_text="Not the password of the account.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    server = forms.CharField(
        required=False,
        max_length=300,
        label="Server",
        help_text="Only if the account is not at Bluesky's own.",
        widget=forms.TextInput(attrs=NO_WORDS),
    )


class MastodonForm(ConnectForm):
    """Where a person's account is."""

    instance = forms.CharField(
        max_length=300,
        label="Instance",
        help_text="Its address, such as mastodon.social, or your whole handle.",
        widget=forms.TextInput(attrs=NO_WORDS),
    )


class WebhookForm(ConnectForm):
    """An https address that posts are sent to. It may be all that it takes to post there, so that
    it is not put into a page again."""

    url = forms.CharField(
        max_length=2_000,
        label="Address",
        help_text="Beginning with https://. It is kept encrypted and never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    name = forms.CharField(
        required=False, max_length=100, label="Name", help_text="Only shown to you."
    )


# By the name of the service.
CONNECT_FORMS: dict[str, type[ConnectForm]] = {
    "bluesky": BlueskyForm,
    "mastodon": MastodonForm,
    "webhook": WebhookForm,
    "app_store": AppStoreKeyForm,
}


class CapForm(forms.Form):
    """The most that a product's posts may cost in a month, in US dollars; empty for no cap."""

    monthly_cap = forms.DecimalField(
        required=False, min_value=0, max_digits=8, decimal_places=2, label="At most, per month"
    )

    def as_text(self) -> str | None:
        cap = self.cleaned_data["monthly_cap"]
        return None if cap is None else str(cap)


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
            (name, name)
            for name in ("approve", "save", "unlink", "reject", "rewrite", "take-back", "posted")
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
