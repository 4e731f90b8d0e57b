/*
 * cmd_basket.c - which things come together, even if they are rare?
 */
#include "apps/basket/basket.h"
#include "cli/rows.h"

static struct basket_args basket_args = {
    .threshold = 0.5, .recall = 0.95, .components = 100, .least = 2
};

static int basket_run(struct list *operands)
{
    return basket(&basket_args, operands);
}

static const struct opt basket_options[] = {
    { "threshold", 'T', OPT_RATE, &basket_args.threshold, "J",
      "smallest share of baskets with both among those with either; 0.5 if not "
      "given" },
    { "recall", 0, OPT_RATE, &basket_args.recall, "P",
      "probability that a pair at the threshold is found; 0.95 if not given" },
    { "components", 0, OPT_POSITIVE, &basket_args.components, "K",
      "components of the signature of an item, at most 512; 100 if not given" },
    { "min-count", 0, OPT_POSITIVE, &basket_args.least, "N",
      "leave out items that are in fewer baskets than this; 2 if not given" },
    BINARY_OPTION,
    JSON_OPTION(basket_args),
    { 0 },
};

static const struct example basket_examples[] = {
    { "bloomery basket -T 0.8 receipts.txt",
      "what is bought together or not at all" },
    { 0 },
};

const struct command cmd_basket = {
    .name = "basket",
    .usage = "[OPTION]... [INPUT]...",
    .summary = "find items that occur together, even rare ones",
    .about =
        "Every line of the input is a basket of items separated by blanks. "
        "Prints the pairs of items whose baskets are similar, the most similar "
        "first: item, item, J, baskets with both, baskets with the first, "
        "baskets with the second, the share of baskets with the first that "
        "also have the second, and the share of baskets with the second that "
        "also have the first, separated by tabs. J is the number of baskets "
        "with both divided by the number of baskets with either.\n\n"
        "The counts are exact. Candidates come from signatures, so a pair at "
        "the threshold is missed with a small probability (see --recall), and "
        "pairs above it with a smaller one. No item is left out for being "
        "rare, unless it is in fewer baskets than --min-count.",
    .options = basket_options,
    .examples = basket_examples,
    .reports = REPORTS({ "", basket_fields, ONE }),
    .run = basket_run,
};
