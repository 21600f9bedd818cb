-- How many chose each place and each rating
SELECT 'place' AS question, place AS choice, count(*) AS n FROM answers GROUP BY place
UNION ALL
SELECT 'rating', CAST(rating AS TEXT), count(*) FROM answers GROUP BY rating
