"""What a signed-in person sees is kept by no cache, and is gone after they sign out."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import has_vary_header


def private_pages(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, around the session's: a page that depends on the session is not stored."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if has_vary_header(response, "Cookie") and not response.has_header("Cache-Control"):
            response.headers["Cache-Control"] = "private, no-store"
        return response

    return middleware
