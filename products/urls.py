from django.urls import path

from products import changelog
from products.views import activity, connections, outlets, products, review, sources

urlpatterns = [
    path("", review.review, name="review"),
    path("posts/<slug:slot>/<slug:product_id>/<slug:outlet>/", review.post, name="post"),
    path("slots/<slug:slot>/<slug:product_id>/approve/", review.approve_slot, name="approve_slot"),
    path("text-length/", review.count_text, name="text_length"),
    path("history/", review.history, name="history"),
    path("history/results/", review.results, name="results"),
    path("products/", products.products, name="products"),
    path("products/new/", products.product_new, name="product_new"),
    path("products/<slug:product_id>/", products.product, name="product"),
    path("products/<slug:product_id>/edit/", products.product_edit, name="product_edit"),
    path("products/<slug:product_id>/sources/<slug:source>/", sources.source, name="source"),
    path("products/<slug:product_id>/outlets/<slug:service>/", outlets.outlet, name="outlet"),
    path("products/<slug:product_id>/activity/", activity.activities, name="activity"),
    path("products/<slug:product_id>/activity/judge/", activity.judge, name="judge"),
    path("connections/", connections.connections_page, name="connections"),
    path("connections/check/", connections.check, name="connection_check"),
    path("connections/sent/", outlets.sent, name="sent"),
    path("connections/held/", outlets.held, name="held"),
    path("connections/disconnect/", connections.disconnect, name="disconnect"),
    path("connections/<slug:provider>/form/", connections.form, name="connect_form"),
    path("connections/<slug:provider>/connect/", connections.connect, name="connect"),
    path("connections/github/more/", connections.more, name="connect_more"),
    path("connections/<slug:provider>/callback/", connections.callback, name="connect_callback"),
    path("connections/<slug:provider>/confirm/", connections.confirm, name="connect_confirm"),
    path("c/<slug:slug>/", changelog.page, name="changelog"),
    path("c/<slug:slug>/feed.atom", changelog.feed, name="changelog_feed"),
    path("c/<slug:slug>/<slug:entry_id>/", changelog.entry, name="changelog_entry"),
]
